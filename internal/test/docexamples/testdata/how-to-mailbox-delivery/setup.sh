mkdir -p etc/ssl; touch etc/ssl/mail.example.org.pem etc/ssl/mail.example.org.key
