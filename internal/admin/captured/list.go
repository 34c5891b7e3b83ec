package captured

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/pipeline/deliver/capture"
)

// entry is a file in a source.
type entry struct {
	ref  fanfare.DeliveryRef
	from int // number of the source
}

// newestFirst orders deliveries by the time of their event, the newest first.
func newestFirst(a, b fanfare.DeliveryRef) int {
	return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(b.Manifest, a.Manifest), cmp.Compare(b.Position, a.Position))
}

// List returns a page of the messages of a service, or of all with "", the newest first. next is the id of the last message that was considered, "" at the end.
// Without a filter, a page is full unless it is the last; with one, it may have fewer messages and a time until which was searched.
func (m *Messages) List(ctx context.Context, service string, q httpapi.CapturedQuery) (page []wire.CapturedMessage, next string, searched *time.Time, err error) {
	sources := slices.DeleteFunc(m.sources(service), func(s source) bool { return q.Channel != "" && s.channel != q.Channel })
	roots := make([]*os.Root, len(sources))
	defer func() {
		for _, root := range roots {
			if root != nil {
				_ = root.Close()
			}
		}
	}()
	before, limited := fanfare.ParseDeliveryRef(q.Before)
	var entries []entry
	for i := range sources {
		if roots[i], err = sources[i].open(); err != nil {
			continue // nothing was written there yet
		}
		if entries, err = addNewest(ctx, entries, roots[i], i, before, limited); err != nil {
			return nil, "", nil, err
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return newestFirst(a.ref, b.ref) })
	more := len(entries) > window
	entries = entries[:min(len(entries), window)]
	begun := time.Now()
	for n, e := range entries {
		s := &sources[e.from]
		head, err := readHead(roots[e.from], e.ref, s)
		if err == nil && selects(&q, &head) {
			page = append(page, head)
		}
		if err := ctx.Err(); err != nil {
			return nil, "", nil, err
		}
		if n+1 == len(entries) {
			break
		}
		if len(page) == q.Limit {
			return page, e.ref.String(), nil, nil
		}
		if n+1 >= maxSearched || time.Since(begun) > searchTime {
			at := head.At
			if err != nil {
				at = e.ref.Day.Time()
			}
			return page, e.ref.String(), &at, nil
		}
	}
	if more {
		next = entries[len(entries)-1].ref.String()
	}
	return page, next, nil, nil
}

// addNewest adds the files of a folder that are older than before, and drops all but the newest ones.
func addNewest(ctx context.Context, entries []entry, root *os.Root, number int, before fanfare.DeliveryRef, limited bool) ([]entry, error) {
	for ref, err := range filesIn(ctx, root) {
		if err != nil {
			return entries, err
		}
		if limited && newestFirst(ref, before) <= 0 {
			continue
		}
		if entries = append(entries, entry{ref, number}); len(entries) > 4*window {
			slices.SortFunc(entries, func(a, b entry) int { return newestFirst(a.ref, b.ref) })
			entries = entries[:window+1] // one more, which shows that there are more
		}
	}
	return entries, nil
}

// filesIn yields the deliveries of the files in a folder, in no order. An error is the last pair.
func filesIn(ctx context.Context, root *os.Root) iter.Seq2[fanfare.DeliveryRef, error] {
	return func(yield func(fanfare.DeliveryRef, error) bool) {
		folder, err := root.Open(".")
		if err != nil {
			yield(fanfare.DeliveryRef{}, unreadable(err))
			return
		}
		defer func() { _ = folder.Close() }()
		var names nameReader
		for {
			some, err := folder.Readdirnames(4096)
			for _, name := range some {
				if ref, ok := names.refOf(name); ok && !yield(ref, nil) {
					return
				}
			}
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(fanfare.DeliveryRef{}, unreadable(err))
				return
			case ctx.Err() != nil:
				yield(fanfare.DeliveryRef{}, ctx.Err())
				return
			}
		}
	}
}

// refOf returns the delivery of a file.
func refOf(name string) (fanfare.DeliveryRef, bool) {
	id, ok := strings.CutSuffix(name, extension)
	if !ok {
		return fanfare.DeliveryRef{}, false
	}
	ref, ok := fanfare.ParseDeliveryRef(id)
	return ref, ok && ref.String() == id
}

// A nameReader reads the names of files, most of which have the same day.
type nameReader struct {
	dayText string // with the hyphen before and after it
	day     fanfare.Day
}

// refOf is the function refOf. It reads a day only if it is another one than that of the last name.
func (n *nameReader) refOf(name string) (fanfare.DeliveryRef, bool) {
	if id, ok := strings.CutSuffix(name, extension); ok && n.dayText != "" {
		if rest, ok := strings.CutPrefix(id, n.dayText); ok {
			first, second, ok := strings.Cut(rest, "-")
			manifest, ok1 := number(first, 64)
			position, ok2 := number(second, 32)
			return fanfare.DeliveryRef{Day: n.day, Manifest: fanfare.ManifestID(manifest), Position: uint32(position)}, ok && ok1 && ok2
		}
	}
	ref, ok := refOf(name)
	if ok {
		last := strings.LastIndexByte(name, '-')
		n.dayText, n.day = name[:strings.LastIndexByte(name[:last], '-')+1], ref.Day
	}
	return ref, ok
}

// number reads a hexadecimal number that is written in one way only.
func number(text string, bits int) (uint64, bool) {
	if len(text) == 0 || text[0] == '0' && len(text) > 1 || strings.Trim(text, "0123456789abcdef") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 16, bits)
	return n, err == nil
}

func unreadable(err error) error {
	return &fanfare.Error{Code: fanfare.Unavailable, Message: "a folder with messages cannot be read", Hint: "check the permissions of the folder and the state of the disk: " + reason(err)}
}

// reason returns an error without the path, which belongs to the machine of the server.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return "see the server log"
}

// selects reports whether a message is one of a query.
func selects(q *httpapi.CapturedQuery, m *wire.CapturedMessage) bool {
	return (q.Recipient == "" || strings.EqualFold(m.To, q.Recipient)) && (q.Subject == "" || strings.Contains(strings.ToLower(m.Subject), strings.ToLower(q.Subject)))
}

// openFile opens the file of a delivery, if it is a regular file.
func openFile(root *os.Root, ref fanfare.DeliveryRef) (*os.File, fs.FileInfo, error) {
	name := ref.String() + extension
	info, err := root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fs.ErrNotExist
	}
	file, err := root.Open(name)
	return file, info, err
}

// readHead reads the begin of a file.
func readHead(root *os.Root, ref fanfare.DeliveryRef, s *source) (wire.CapturedMessage, error) {
	file, info, err := openFile(root, ref)
	if err != nil {
		return wire.CapturedMessage{}, err
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, min(info.Size(), maxHeadBytes))
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return wire.CapturedMessage{}, err
	}
	return describe(ref, s, info, head[:n]), nil
}

// describe returns a message without its content. The first fields are those that the driver wrote, so that later ones cannot replace them.
func describe(ref fanfare.DeliveryRef, s *source, info fs.FileInfo, header []byte) wire.CapturedMessage {
	m := wire.CapturedMessage{ID: ref.String(), Service: s.service, Channel: s.channel, Kind: mailKind, At: info.ModTime().UTC().Truncate(time.Second), SizeBytes: info.Size()}
	seen := map[string]bool{}
	contentType := ""
	n := 0
	for f := range mimetree.Fields(header) {
		if n++; n > maxListed {
			break
		}
		name := strings.ToLower(f.Name)
		if seen[name] {
			continue
		}
		seen[name] = true
		switch name {
		case "delivered-to":
			m.To = textOf(f.Value)
		case "from":
			m.From = textOf(f.Value)
		case "subject":
			m.Subject = textOf(f.Value)
		case "content-type":
			contentType = textOf(f.Value)
		}
	}
	if url, ok := strings.CutPrefix(m.Subject, "POST "); ok && s.captured && m.To == capture.PlaceholderAddress && contentType == "application/json" {
		m.Kind, m.From, m.To, m.Subject = webhookKind, "", url, ""
	}
	return m
}

// textOf returns the text of a field in one line, decoded and without control characters.
func textOf(value []byte) string {
	value = value[:min(len(value), maxValueBytes)]
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, mimetree.DecodeHeader(string(value)))
	return strings.TrimSpace(text)
}
