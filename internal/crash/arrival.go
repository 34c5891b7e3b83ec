package crash

import (
	"bufio"
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
// Message-ID, separated by tabs.
func ReadArrivals(r io.Reader) ([]Arrival, error) {
	var all []Arrival
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 4 {
			return nil, fmt.Errorf("line %d of the record has %d fields", len(all)+1, len(fields))
		}
		at, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("line %d of the record: %w", len(all)+1, err)
		}
		all = append(all, Arrival{At: time.Unix(0, at), Event: fields[1], Recipient: fields[2], MessageID: fields[3]})
	}
	return all, lines.Err()
}
