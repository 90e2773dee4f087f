"""Messages between the job and the child."""

from __future__ import annotations

import pickle
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amp_evaluation.isolation import protocol
from amp_evaluation.isolation.protocol import Failed, Loaded, Prompted, Ready, Scored, decode_reply, encode_reply

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
REPLIES = st.one_of(
    st.builds(Ready, landlock_abi=st.integers(0, 9)),
    st.builds(Failed, reason=TEXTS),
    st.builds(Prompted, text=TEXTS),
    st.builds(Scored, score=st.none() | st.floats(0, 1), passed=st.none() | st.booleans(), explanation=TEXTS),
    st.builds(Loaded, level=st.just("llm"), modes=st.just(["monitor"]), defect=TEXTS),
)


@given(REPLIES)
def test_a_reply_comes_back_as_it_was(reply: protocol.Reply) -> None:
    assert decode_reply(encode_reply(reply)) == reply


def test_lone_surrogates_are_replaced_in_every_text_of_a_reply() -> None:
    sent = Loaded(level="trace", modes=[], description="a\ud800b", tags=["\udfff"], config_schema=[{"key": "\ud800"}])
    came = decode_reply(encode_reply(sent))
    assert isinstance(came, Loaded)
    assert (came.description, came.tags, came.config_schema) == ("a?b", ["?"], [{"key": "?"}])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(pickle.dumps({"type": "scored", "score": 1.0}), id="a pickle"),
        pytest.param(b"{}", id="an object of no kind"),
        pytest.param(b'{"type":"scored","score":"1"}', id="a wrong type"),
        pytest.param(b'{"type":"scored","score":NaN}', id="no number"),
        pytest.param(b"\xff", id="no text"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_no_reply_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError):
        decode_reply(body)


@given(st.binary(max_size=10))
def test_a_message_arrives_whole(body: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        protocol.send(ours, body)
        assert protocol.receive(theirs) == body


def test_a_message_larger_than_the_socket_buffer_arrives_whole() -> None:
    ours, theirs = socket.socketpair()
    body = bytes(range(256)) * 40_000
    with ours, theirs:
        sender = threading.Thread(target=protocol.send, args=(ours, body))
        sender.start()
        assert protocol.receive(theirs) == body
        sender.join()


@pytest.mark.parametrize("sent", [b"", protocol.LENGTH.pack(5), protocol.LENGTH.pack(5) + b"abc"])
def test_a_channel_that_ends_gives_nothing(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(sent)
        assert protocol.receive(theirs) is None
