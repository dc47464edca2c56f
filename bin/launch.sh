# Shared by the launchers beside it; sourced, not run.
#
# Two layouts:
#   a checkout        bin/ beside Cargo.toml: the binary is built when it is missing or older than the sources
#   an installation   bin/ beside libexec/:   libexec/<program> is executed
#
# ROCKETMQ_HOME defaults to the folder above bin/, as in RocketMQ's own scripts.

# launch PACKAGE PROGRAM ARGUMENT...
launch() {
    package=$1
    program=$2
    shift 2
    : "${ROCKETMQ_HOME:=$root}"
    export ROCKETMQ_HOME

    if [ -x "$root/libexec/$program" ]; then
        exec "$root/libexec/$program" "$@"
    fi
    if [ ! -f "$root/Cargo.toml" ]; then
        echo "$program: neither $root/libexec/$program nor a checkout to build it from" >&2
        exit 255
    fi

    target=${CARGO_TARGET_DIR:-$root/target}
    case $target in
        /*) ;;
        *) target=$root/$target ;;
    esac
    binary=$target/release/$program
    if [ ! -x "$binary" ] || sources_are_newer "$binary"; then
        command -v cargo >/dev/null || {
            echo "$program: cargo is needed to build it the first time, see https://rustup.rs" >&2
            exit 255
        }
        [ -x "$binary" ] || echo "building $program, once ..." >&2
        # standard output belongs to the program
        (cd "$root" && CARGO_TARGET_DIR=$target cargo build --quiet --release --locked -p "$package" --bin "$program") >&2 || exit 255
    fi
    exec "$binary" "$@"
}

sources_are_newer() {
    newer=$(find "$root/crates" "$root/Cargo.toml" "$root/Cargo.lock" -newer "$1" \
        \( -name '*.rs' -o -name '*.toml' -o -name '*.lock' -o -name '*.txt' \) -print 2>/dev/null | head -n 1)
    [ -n "$newer" ]
}
