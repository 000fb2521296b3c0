# Every command explains itself: the texts of all of them, found by following what each lists.
# form: human
below() {
  writ "$@" --help
  local names
  names=$(sed -n '/^Commands:/,$p' "$OUT" | grep -o -E '^  [a-z]+[a-z-]*' | grep -v ' help$')
  for name in $names; do below "$@" "$name"; done
}
below
writ help
writ help repo
writ help root rotate
writ help nonsense
writ --version
writ -V
writ --nonsense
writ nonsense
writ repo nonsense
