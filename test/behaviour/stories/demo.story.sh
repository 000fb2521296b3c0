# The demo as it is, with all that it says.
# form: human
mkdir t
second=1
next '$ node demo.js'
(TMPDIR=$W/t exec "$NODE" "$DEMO") >"$OUT" 2>"$record.stderr" </dev/null
echo $? >"$record.exit"
