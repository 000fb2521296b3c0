# State directories that the first checkout has written, asked and then used by each: whoever is updated in the middle of
# anything finds the same, says the same and goes on the same.
# form: human
for name in $(ls hosts | sort); do
  for question in status history verify doctor; do both "$question" --config "hosts/$name/agent.yaml"; done
  writ pull --config "hosts/$name/agent.yaml"
  both status --config "hosts/$name/agent.yaml"
done
mv repo away
for name in $(ls hosts | sort); do
  writ verify --repair --config "hosts/$name/agent.yaml"
  writ rollback --config "hosts/$name/agent.yaml"
  writ history -n 1 --config "hosts/$name/agent.yaml"
done
look hosts
