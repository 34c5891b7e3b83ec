mkdir -p etc/ssl; mv mx.pem etc/ssl/mx.example.org.pem; mv mx.key etc/ssl/mx.example.org.key
