# A broadcast that is held, so that it is under way for as long as it takes.
for to in ada bob; do fanfare subscription put storms-$to - <<< '{"topic":"storms","channel":"mail","to":"'$to'@example.com"}'; done
EVENT=$(fanfare publish storms story.json --json | grep -o 'evt-[0-9]*-[0-9a-f]*' | head -1)
until ./bin/fanfare trace $EVENT 2> /dev/null | grep -q held; do sleep 0.05; done
fanfare subscriber put somebody - <<< '{"addresses":[{"kind":"mail","address":"somebody@example.org"}]}'
fanfare backup fanfare-2026-11-20.tar > /dev/null
