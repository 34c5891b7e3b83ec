fanfare mailbox create ada@example.com > /dev/null 2>&1 || :
mkdir -p ~/Maildir/cur ~/Maildir/new ~/Maildir/tmp
