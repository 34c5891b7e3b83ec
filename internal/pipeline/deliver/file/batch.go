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
type batch struct {
	folder string
	names  TempNames
	files  []tempFile
}

// A sheet is one message in a file that nobody looks at.
type tempFile struct {
	message *driver.Message
	file    *os.File
}

// write puts messages into files of their own. The first that cannot be written goes
// back, and so do those behind it.
func (p *batch) write(queue driver.Queue, messages []*driver.Message) error {
	for i, message := range messages {
		part, err := write(p.folder, p.names, message)
		if err != nil {
			for _, rest := range slices.Backward(messages[i:]) { // the first is in front again at last
				queue.Return(rest)
			}
			return fmt.Errorf("folder of the channel: %w", err)
		}
		p.files = append(p.files, tempFile{message, part})
	}
	return nil
}

// write puts a message into a file. The envelope stands in front, as a delivering
// mail server would add it (RFC 5321 section 4.4).
func write(folder string, mark TempNames, message *driver.Message) (part *os.File, err error) {
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
func (p *batch) sync(queue driver.Queue, disk *syncer) (failed error) {
	if len(p.files) == 0 {
		return nil
	}
	files := make([]*os.File, len(p.files))
	for i, s := range p.files {
		files[i] = s.file
	}
	errs := disk.sync(files)
	for i, f := range files {
		errs[i] = errors.Join(errs[i], f.Close())
	}
	for i, s := range slices.Backward(p.files) {
		if errs[i] == nil {
			continue
		}
		failed = fmt.Errorf("folder of the channel: %w", errs[i])
		queue.Return(s.message)
		s.discard()
		p.files = slices.Delete(p.files, i, i+1)
	}
	return failed
}

// release asks for all messages, and forgets those that must not leave.
func (p *batch) release(queue driver.Queue) {
	for len(p.files) > 0 {
		left, released := p.releaseOnce(queue)
		if released {
			return
		}
		p.filter(func(s tempFile) bool { return slices.Contains(left, s.message) })
	}
}

func (p *batch) releaseOnce(queue driver.Queue) (left []*driver.Message, released bool) {
	if len(p.files) == 1 {
		return nil, queue.Release(p.files[0].message)
	}
	return queue.ReleaseAll(p.messages())
}

func (p *batch) messages() []*driver.Message {
	messages := make([]*driver.Message, len(p.files))
	for i, s := range p.files {
		messages[i] = s.message
	}
	return messages
}

// rename gives the files their names, and syncs those too. A file whose name is not
// sure to last has not arrived.
func (p *batch) rename() (outcomes []driver.Outcome, failed error) {
	outcomes = slices.Repeat([]driver.Outcome{{Verdict: driver.Accepted, Text: "written", Relay: p.folder}}, len(p.files))
	refuse := func(i int, err error) {
		text := []byte("could not be written: " + err.Error())
		outcomes[i].Verdict, outcomes[i].Text = driver.Temporary, string(driver.AppendText(nil, text, driver.MaxTextBytes))
	}
	for i, s := range p.files {
		if err := os.Rename(s.file.Name(), filepath.Join(p.folder, s.message.Delivery.String()+".eml")); err != nil {
			refuse(i, err)
			failed = errors.Join(failed, err)
			continue
		}
		p.files[i].file = nil
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
func (p *batch) report(queue driver.Queue, outcomes []driver.Outcome) error {
	if len(p.files) == 1 {
		return queue.Report(p.files[0].message, outcomes[0])
	}
	return queue.ReportAll(p.messages(), outcomes)
}

// filter takes the sheets out that do not stay.
func (p *batch) filter(stays func(tempFile) bool) {
	p.files = slices.DeleteFunc(p.files, func(s tempFile) bool {
		stay := stays(s)
		if !stay {
			s.discard()
		}
		return !stay
	})
}

// discardAll removes what has not got its name.
func (p *batch) discardAll() {
	for _, s := range p.files {
		s.discard()
	}
}

// discard removes a file that has not got its name. Where even that fails, the
// folder is broken, which the next message will find.
func (s tempFile) discard() {
	if s.file != nil {
		_ = s.file.Close() // it may have been
		_ = os.Remove(s.file.Name())
	}
}
