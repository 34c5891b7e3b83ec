fanfare subscriber put nia - <<< '{"addresses":[{"kind":"mail","address":"nia@example.org"}],"locale":"cy","time_zone":"Europe/London"}'
