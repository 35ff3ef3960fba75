# shellcheck shell=bash disable=SC2154
# Sourced by the programs in bin/ with $root set: the environment they share, and whether bin/setup has anything to do.
# It runs at every start of twinstream, so it only uses what bash has built in.

# slurp VARIABLE FILE: the whole file, or nothing if it cannot be read.
slurp() {
    printf -v "$1" ''
    if [[ -r $2 ]]; then
        IFS= read -r -d '' "$1" <"$2" || true
    fi
}

# A stamp holds the checkout's place and the very file that a folder was made from.
is_stamped() {
    local stamp made_from
    slurp stamp "$1/.stamp"
    slurp made_from "$2"
    [[ -n $made_from && $stamp == "$root"$'\n'"$made_from" ]]
}

venv_is_current() { [[ -x $root/.venv/bin/python ]] && is_stamped "$root/.venv" "$root/requirements.txt"; }
jars_are_current() { is_stamped "$root/.jars" "$root/include/spark/ivy.xml"; }
# Java itself sees whether the archive is of its own classes; here it only has to be newer than the jars and packages.
classes_are_current() { [[ $root/.jars/classes.jsa -nt $root/.jars/.stamp && $root/.jars/classes.jsa -nt $root/.venv/.stamp ]]; }
kafka_is_current() { is_stamped "$root/.kafka" "$root/include/kafka/ivy.xml"; }

# java_is_too_old HOME: true when its release file names a Java below 17.
java_is_too_old() {
    local release
    slurp release "$1/release"
    [[ $release =~ JAVA_VERSION=\"(1\.)?([0-9]+) ]] && ((BASH_REMATCH[2] < 17))
}

# Spark takes JAVA_HOME, then the PATH; where neither would do, it gets the Java that bin/setup found.
use_recorded_java() {
    local home
    slurp home "$root/.venv/.java-home"
    home=${home%$'\n'}
    if [[ -x $home/bin/java ]] && { [[ -z ${JAVA_HOME:-} ]] || java_is_too_old "$JAVA_HOME"; }; then
        export JAVA_HOME=$home
    fi
}

export_defaults() {
    export TWINSTREAM_PIPELINES=${TWINSTREAM_PIPELINES:-$root/include/pipelines}
    export TWINSTREAM_HOME=${TWINSTREAM_HOME:-$root/.twinstream}
    export TWINSTREAM_JARS=${TWINSTREAM_JARS:-$root/.jars}
    unset PYTHONHOME
    # Python's compiled files are kept in the checkout: without them each of many short processes compiles all it imports.
    unset PYTHONDONTWRITEBYTECODE
    use_recorded_java
}
