package crash

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// An Arrival is one message as the capture server took it.
type Arrival struct {
	At        time.Time
	Event     string // public id, from the message's header
	Recipient string
	MessageID string
}

// ReadArrivals reads the capture server's record: a line for each message, with
// the time in nanoseconds of the Unix epoch, the event, the recipient and the
// Message-ID, separated by tabs. It may be read while it is written: a line
// without its end is not there yet, and its message was not answered.
func ReadArrivals(r io.Reader) ([]Arrival, error) {
	var all []Arrival
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 {
			return nil, fmt.Errorf("line %d of the record has %d fields", len(all)+1, len(fields))
		}
		at, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("line %d of the record: %w", len(all)+1, err)
		}
		all = append(all, Arrival{At: time.Unix(0, at), Event: fields[1], Recipient: fields[2], MessageID: fields[3]})
	}
}
