# State directories that the first checkout has written, asked and then used by each: whoever is updated in the middle of
# anything finds the same, says the same and goes on the same.
for name in $(ls hosts | sort); do
  host() { writ "$@" --config "hosts/$name/agent.yaml"; }
  look "hosts/$name"
  for question in status health history verify doctor; do host "$question"; done
  host pull
  host status
  host history
done
mv repo away
for name in $(ls hosts | sort); do
  host verify --repair
  host rollback
  host history -n 1
done
look hosts
