package loadgen

import (
	"bufio"
	"strings"
	"testing"
)

func TestAnswersAreReadToTheirEnd(t *testing.T) {
	read := func(text string) error { return readAnswer(bufio.NewReader(strings.NewReader(text))) }
	if err := read("HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
		t.Error(err)
	}
	for name, text := range map[string]string{
		"refused":     "HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nbad",
		"short":       "HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\n\r\n{}",
		"closing":     "HTTP/1.1 202 Accepted\r\nConnection: close\r\n\r\n{}",
		"not an HTTP": "220 mail.example.org\r\n",
	} {
		if read(text) == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
