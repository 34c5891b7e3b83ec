package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A pile is messages on their way into a folder.
type pile struct {
	folder string
	mark   Mark
	sheets []sheet
}

// A sheet is one message in a file that nobody looks at.
type sheet struct {
	message *driver.Message
	part    *os.File
}

// write puts messages into files of their own. The first that cannot be written goes
// back, and so do those behind it.
func (p *pile) write(queue driver.Queue, messages []*driver.Message) error {
	for i, message := range messages {
		part, err := write(p.folder, p.mark, message)
		if err != nil {
			for _, rest := range slices.Backward(messages[i:]) { // the first is in front again at last
				queue.Return(rest)
			}
			return fmt.Errorf("folder of the channel: %w", err)
		}
		p.sheets = append(p.sheets, sheet{message, part})
	}
	return nil
}

// write puts a message into a file. The envelope stands in front, as a delivering
// mail server would add it (RFC 5321 section 4.4).
func write(folder string, mark Mark, message *driver.Message) (part *os.File, err error) {
	part, err = os.CreateTemp(folder, mark.prefix()+"*")
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(part, "Return-Path: <"+message.From+">\r\nDelivered-To: "+message.To+"\r\n")
	if err == nil {
		_, err = part.Write(message.Body)
	}
	if err == nil {
		_, err = part.Write(message.Attachments)
	}
	if err != nil {
		return nil, errors.Join(err, part.Close(), os.Remove(part.Name()))
	}
	return part, nil
}

// sync makes what was written durable. A message of which that fails goes back.
func (p *pile) sync(queue driver.Queue, disk *syncer) (failed error) {
	if len(p.sheets) == 0 {
		return nil
	}
	files := make([]*os.File, len(p.sheets))
	for i, s := range p.sheets {
		files[i] = s.part
	}
	errs := disk.sync(files)
	for i, f := range files {
		errs[i] = errors.Join(errs[i], f.Close())
	}
	for i, s := range slices.Backward(p.sheets) {
		if errs[i] == nil {
			continue
		}
		failed = fmt.Errorf("folder of the channel: %w", errs[i])
		queue.Return(s.message)
		s.discard()
		p.sheets = slices.Delete(p.sheets, i, i+1)
	}
	return failed
}

// release asks for all messages, and forgets those that must not leave.
func (p *pile) release(queue driver.Queue) {
	for len(p.sheets) > 0 {
		left, released := p.ask(queue)
		if released {
			return
		}
		p.keep(func(s sheet) bool { return slices.Contains(left, s.message) })
	}
}

func (p *pile) ask(queue driver.Queue) (left []*driver.Message, released bool) {
	if len(p.sheets) == 1 {
		return nil, queue.Release(p.sheets[0].message)
	}
	return queue.ReleaseAll(p.messages())
}

func (p *pile) messages() []*driver.Message {
	messages := make([]*driver.Message, len(p.sheets))
	for i, s := range p.sheets {
		messages[i] = s.message
	}
	return messages
}

// place gives the files their names, and syncs those too. A file whose name is not
// sure to last has not arrived.
func (p *pile) place() (outcomes []driver.Outcome, failed error) {
	outcomes = slices.Repeat([]driver.Outcome{{Verdict: driver.Accepted, Text: "written", Relay: p.folder}}, len(p.sheets))
	refuse := func(i int, err error) {
		text := []byte("could not be written: " + err.Error())
		outcomes[i].Verdict, outcomes[i].Text = driver.Temporary, string(driver.AppendText(nil, text, driver.MaxTextBytes))
	}
	for i, s := range p.sheets {
		if err := os.Rename(s.part.Name(), filepath.Join(p.folder, s.message.Delivery.String()+".eml")); err != nil {
			refuse(i, err)
			failed = errors.Join(failed, err)
			continue
		}
		p.sheets[i].part = nil
	}
	if err := syncFolder(p.folder); err != nil {
		for i := range outcomes {
			refuse(i, err)
		}
		failed = errors.Join(failed, err)
	}
	return outcomes, failed
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// report gives what came of the messages.
func (p *pile) report(queue driver.Queue, outcomes []driver.Outcome) error {
	if len(p.sheets) == 1 {
		return queue.Report(p.sheets[0].message, outcomes[0])
	}
	return queue.ReportAll(p.messages(), outcomes)
}

// keep takes the sheets out that do not stay.
func (p *pile) keep(stays func(sheet) bool) {
	p.sheets = slices.DeleteFunc(p.sheets, func(s sheet) bool {
		stay := stays(s)
		if !stay {
			s.discard()
		}
		return !stay
	})
}

// clear removes what has not got its name.
func (p *pile) clear() {
	for _, s := range p.sheets {
		s.discard()
	}
}

// discard removes a file that has not got its name. Where even that fails, the
// folder is broken, which the next message will find.
func (s sheet) discard() {
	if s.part != nil {
		_ = s.part.Close() // it may have been
		_ = os.Remove(s.part.Name())
	}
}
