package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

func TestALongLineOfAnImportIsRefused(t *testing.T) {
	in := bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", 100)+"\n"), 16)
	if _, err := readLine(in, 99); fanfare.CodeOf(err) != fanfare.TooLarge {
		t.Errorf("refused with %v", err)
	}
	in = bufio.NewReaderSize(strings.NewReader(strings.Repeat("x", 98)+"\n"), 16)
	if line, err := readLine(in, 99); err != nil || len(line) != 98 {
		t.Errorf("%d bytes, %v", len(line), err)
	}
}

func TestAnImportWithoutMessagesIsRefused(t *testing.T) {
	api := newWorld().api()
	for _, body := range []string{"", "\n", " \r\n\n"} {
		response := ask(t, api, "POST", "/v1/mailboxes/ann@example.com/import?service=news", body, "Content-Type", "application/x-ndjson")
		if response.Code != http.StatusUnprocessableEntity || !strings.Contains(response.Body.String(), "the body has no messages") {
			t.Errorf("%q is answered with %d %s", body, response.Code, response.Body)
		}
	}
}

func FuzzImportedLines(f *testing.F) {
	f.Add([]byte(`{"type":"mail","mail":{"folder":"a/b","received_at":"2026-11-20T12:00:00Z","flags":["seen"],"content":"eA=="}}` + "\n\n" + `{"type":"mailbox","mailbox":{"folders":[{"name":"x"}]}}`))
	f.Add([]byte("null\n{}\n[1]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := &mailLines{body: bufio.NewReaderSize(bytes.NewReader(data), 16), control: http.NewResponseController(httptest.NewRecorder())}
		for {
			line, err := in.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				if fanfare.CodeOf(in.explain(err, 0)) == fanfare.Internal {
					t.Errorf("line %d of %q is refused with %v", in.number, data, err)
				}
				return
			}
			if line == nil {
				t.Fatalf("line %d of %q is nothing", in.number, data)
			}
		}
		if in.number > bytes.Count(data, []byte("\n"))+1 {
			t.Errorf("%q has %d lines", data, in.number)
		}
	})
}
