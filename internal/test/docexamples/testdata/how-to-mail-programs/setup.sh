mkdir -p etc/ssl; touch etc/ssl/mail.example.org.pem etc/ssl/mail.example.org.key
echo '{"addresses":[{"kind":"mail","address":"joe@example.org"}]}' | fanfare subscriber put joe -
