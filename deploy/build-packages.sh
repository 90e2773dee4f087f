#!/bin/sh
# build-packages.sh TARGET SDK FLAVOR VERSION: the virtual environment of the image, as small as it gets.
# VERSION empty: the SDK is built from the folder SDK. FLAVOR: full or small (README, "The image").
set -eu
target=$1 sdk=$2 flavor=$3 version=$4
case "$flavor" in
    full) extra=full ;;
    small) extra=job ;;
    *) echo "FLAVOR is full or small, not '$flavor'" >&2; exit 2 ;;
esac
python -m venv "$target"
if [ -n "$version" ]; then
    "$target/bin/pip" install --quiet "amp-evaluation[$extra]==$version" || {
        echo "amp-evaluation $version can't be had from the package index: without AMP_EVALUATION_VERSION it is built from libs/" >&2
        exit 1
    }
else
    "$target/bin/pip" wheel --quiet --no-deps --wheel-dir dist "$sdk"
    "$target/bin/pip" install --quiet "$(ls dist/amp_evaluation-*.whl)[$extra]"
fi
# What no run needs: pip itself, packages' own tests, and headers.
"$target/bin/pip" uninstall --quiet --yes pip setuptools
find "$target/lib" -type d \( -name tests -o -name test \) -path '*/site-packages/*' -prune -exec rm -rf {} +
find "$target" -type d -name include -path '*/numpy/*' -prune -exec rm -rf {} +
find "$target/lib" -name '__pycache__' -type d -prune -exec rm -rf {} +
# Bytecode now: the root file system may be read-only later, and a start without it takes seconds.
python -m compileall -q -j 0 "$target/lib"
