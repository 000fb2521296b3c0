# The demo as it is, with all that it says.
# form: human
mkdir t
next '$ node demo.js'
# Its commands inherit the clock and the random bytes.
(TMPDIR=$W/t BEHAVIOUR_NOW_MS=$START_MS BEHAVIOUR_SEED=demo NODE_OPTIONS="--import $TOOLS/pinned-process.js" \
  exec "$NODE" "$DEMO") >"$OUT" 2>"$record.stderr" </dev/null
echo $? >"$record.exit"
