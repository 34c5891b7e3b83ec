package frame

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// The expected bytes are written by hand from docs/reference/session-protocol.md.
func TestRecordsHaveTheDocumentedLayout(t *testing.T) {
	for name, c := range map[string]struct {
		got  []byte
		want string
	}{
		"header":   {AppendHeader(nil, Header{Requests, 2, 7}), "01000000" + "02000000" + "0700000000000000"},
		"request":  {AppendRequest(nil, &Request{ID: []byte("i"), Action: []byte("ac"), UserData: []byte("use"), Body: []byte("body"), Timeout: 258}), "04000000" + "02010000" + "0100" + "0200" + "0300" + "0000" + "69" + "6163" + "757365" + "626f6479"},
		"refused":  {AppendException(nil, &Exception{Number: 9, Refused: true, Problem: []byte("{}")}), "0900000000000000" + "02000000" + "01000000" + "7b7d"},
		"response": {AppendResponse(nil, &Response{Request: 3, ID: []byte("i"), UserData: []byte("us"), Body: []byte("b"), Status: Fault, Last: true, Attempts: 4}), "0300000000000000" + "01000000" + "0100" + "0200" + "01" + "01" + "0400" + "00000000" + "69" + "7573" + "62"},
		"task":     {AppendTask(nil, &Task{Tag: 1, Session: 2, Request: 3, Client: 4, Timeout: 5, Attempt: 6, Action: []byte("a"), Body: []byte("bo")}), "0100000000000000" + "0200000000000000" + "0300000000000000" + "04000000" + "02000000" + "05000000" + "0100" + "0600" + "61" + "626f"},
		"result":   {AppendResult(nil, &Result{Tag: 1, Micros: 2, Status: Retry, Body: []byte("b")}), "0100000000000000" + "01000000" + "02000000" + "02" + "00000000000000" + "62"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hex.EncodeToString(c.got); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Each decoder either refuses its input or returns the record whose encoding is that input.
func FuzzRecords(f *testing.F) {
	f.Add(AppendRequest(nil, &Request{ID: []byte("i"), Body: []byte("b")}))
	f.Add(AppendResponse(nil, &Response{Body: []byte("b"), Last: true}))
	f.Add(AppendTask(nil, &Task{Action: []byte("a"), Body: []byte("b")}))
	f.Add(AppendResult(nil, &Result{Body: []byte("b")}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var request Request
		if rest, err := NextRequest(b, &request); err == nil {
			same(t, b, rest, AppendRequest(nil, &request), 14, 15)
		}
		var exception Exception
		if rest, err := NextException(b, &exception); err == nil {
			same(t, b, rest, AppendException(nil, &exception), 12, 13, 14, 15)
		}
		var response Response
		if rest, err := NextResponse(b, &response); err == nil {
			same(t, b, rest, AppendResponse(nil, &response), 17, 20, 21, 22, 23)
		}
		var task Task
		if rest, err := NextTask(b, &task); err == nil {
			same(t, b, rest, AppendTask(nil, &task))
		}
		var result Result
		if rest, err := NextResult(b, &result); err == nil {
			same(t, b, rest, AppendResult(nil, &result), 17, 18, 19, 20, 21, 22, 23)
		}
	})
}

// same compares the bytes that were read with their encoding, apart from the flags and the reserved bytes at the positions ignored.
func same(t *testing.T, b, rest, encoded []byte, ignored ...int) {
	t.Helper()
	read := bytes.Clone(b[:len(b)-len(rest)])
	if len(read) != len(encoded) {
		t.Fatalf("read %d bytes, encoded %d", len(read), len(encoded))
	}
	for _, i := range ignored {
		read[i], encoded[i] = 0, 0
	}
	if !bytes.Equal(read, encoded) {
		t.Fatalf("read    %x\nencoded %x", read, encoded)
	}
}
