"""Which providers of models a console offers for judges, and what it asks a person for."""

from __future__ import annotations

from amp_evaluation._info import LLMConfigField, LLMProviderInfo

__all__ = ["LLMConfigField", "LLMProviderInfo", "get_llm_provider_catalog"]


# name, display name, variable of the key, models: fit for judging, the cheaper ones first
_PROVIDERS = (
    ("openai", "OpenAI", "OPENAI_API_KEY", ("gpt-4o-mini", "gpt-4o", "gpt-4.1-mini", "gpt-4.1", "o4-mini")),
    (
        "anthropic",
        "Anthropic",
        "ANTHROPIC_API_KEY",
        ("claude-3-5-haiku-latest", "claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5"),
    ),
    ("gemini", "Google Gemini", "GEMINI_API_KEY", ("gemini-2.5-flash-lite", "gemini-2.5-flash", "gemini-2.5-pro")),
    ("groq", "Groq", "GROQ_API_KEY", ("llama-3.1-8b-instant", "llama-3.3-70b-versatile", "openai/gpt-oss-120b")),
    (
        "mistral",
        "Mistral AI",
        "MISTRAL_API_KEY",
        ("mistral-small-latest", "mistral-medium-latest", "mistral-large-latest"),
    ),
)


def get_llm_provider_catalog() -> list[LLMProviderInfo]:
    """The providers with a key of their own; any other that any-llm knows can be named in a judge's model too."""
    return [
        LLMProviderInfo(
            name=name,
            display_name=display_name,
            config_fields=[
                LLMConfigField(
                    key="api_key",
                    label="API key",
                    field_type="password",
                    required=True,
                    env_var=variable,
                    description=f"Key for the API of {display_name}.",
                )
            ],
            models=[f"{name}/{model}" for model in models],
        )
        for name, display_name, variable, models in _PROVIDERS
    ]
