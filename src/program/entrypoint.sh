# Starts petql in a container, whose first process gets no signal without a handler for it. Node.js has none until its modules run.
trap 'kill -TERM "$petql" 2>/dev/null || exit 143' TERM
trap 'kill -INT "$petql" 2>/dev/null || exit 130' INT

# The shell gives a process in the background no standard input but this one.
exec 3<&0
# A small young generation keeps garbage collection pauses short under many unknown keys.
node --max-semi-space-size=16 src/program/main.ts "$@" <&3 3<&- &
petql=$!

# A signal ends `wait`, and petql goes on until it has stopped.
until wait "$petql"; code=$?; ! kill -0 "$petql" 2>/dev/null; do :; done
exit "$code"
