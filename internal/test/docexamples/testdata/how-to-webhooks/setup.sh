mkdir -p var/lib/fanfare && head -c 32 /dev/urandom > var/lib/fanfare/webhook.key
