package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"fanfare.dev/fanfare/internal/durablefile"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// A batch is a set of messages that are written together.
type batch struct {
	folder string
	names  TempNames
	files  []tempFile
}

// A tempFile is one message under a temporary name.
type tempFile struct {
	message *driver.Message
	file    *os.File
}

// write writes each message to a temporary file. If one cannot be written, it and the ones
// after it are returned.
func (b *batch) write(queue driver.Queue, messages []*driver.Message) error {
	for i, message := range messages {
		file, err := write(b.folder, b.names, message)
		if err != nil {
			for _, rest := range slices.Backward(messages[i:]) { // so that the first one ends up at the front
				queue.Return(rest)
			}
			return fmt.Errorf("cannot write to the folder of the channel: %w", err)
		}
		b.files = append(b.files, tempFile{message, file})
	}
	return nil
}

// write writes a message to a temporary file, with the envelope in front, as a delivering
// mail server adds it (RFC 5321, section 4.4).
func write(folder string, names TempNames, message *driver.Message) (file *os.File, err error) {
	file, err = os.CreateTemp(folder, names.prefix()+"*")
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(file, "Return-Path: <"+message.From+">\r\nDelivered-To: "+message.To+"\r\n")
	if err == nil {
		_, err = file.Write(message.Body)
	}
	if err == nil {
		_, err = file.Write(message.Attachments)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return file, nil
}

// sync makes the files durable. A message whose file cannot be synced is returned.
func (b *batch) sync(queue driver.Queue, disk *syncer) (failed error) {
	if len(b.files) == 0 {
		return nil
	}
	files := make([]*os.File, len(b.files))
	for i, s := range b.files {
		files[i] = s.file
	}
	errs := disk.sync(files)
	for i, f := range files {
		errs[i] = errors.Join(errs[i], f.Close())
	}
	for i, s := range slices.Backward(b.files) {
		if errs[i] == nil {
			continue
		}
		failed = fmt.Errorf("cannot write to the folder of the channel: %w", errs[i])
		queue.Return(s.message)
		s.discard()
		b.files = slices.Delete(b.files, i, i+1)
	}
	return failed
}

// release releases the messages, and drops those that must not be sent.
func (b *batch) release(queue driver.Queue) {
	for len(b.files) > 0 {
		left, released := b.releaseOnce(queue)
		if released {
			return
		}
		b.filter(func(s tempFile) bool { return slices.Contains(left, s.message) })
	}
}

func (b *batch) releaseOnce(queue driver.Queue) (left []*driver.Message, released bool) {
	if len(b.files) == 1 {
		return nil, queue.Release(b.files[0].message)
	}
	return queue.ReleaseAll(b.messages())
}

func (b *batch) messages() []*driver.Message {
	messages := make([]*driver.Message, len(b.files))
	for i, s := range b.files {
		messages[i] = s.message
	}
	return messages
}

// rename gives the files their final names, and syncs the folder. A message counts as
// delivered only when its name is durable.
func (b *batch) rename() (outcomes []driver.Outcome, failed error) {
	outcomes = slices.Repeat([]driver.Outcome{{Verdict: driver.Accepted, Text: "written", Relay: b.folder}}, len(b.files))
	refuse := func(i int, err error) {
		text := []byte("cannot write the file: " + err.Error())
		outcomes[i].Verdict, outcomes[i].Text = driver.Temporary, string(driver.AppendText(nil, text, driver.MaxTextBytes))
	}
	for i, s := range b.files {
		if err := os.Rename(s.file.Name(), filepath.Join(b.folder, s.message.Delivery.String()+".eml")); err != nil {
			refuse(i, err)
			failed = errors.Join(failed, err)
			continue
		}
		b.files[i].file = nil
	}
	if failpoint.Fault("files-without-names") {
		return outcomes, failed
	}
	if err := durablefile.SyncDir(b.folder); err != nil {
		for i := range outcomes {
			refuse(i, err)
		}
		failed = errors.Join(failed, err)
	}
	return outcomes, failed
}

// report reports the outcomes.
func (b *batch) report(queue driver.Queue, outcomes []driver.Outcome) error {
	if len(b.files) == 1 {
		return queue.Report(b.files[0].message, outcomes[0])
	}
	return queue.ReportAll(b.messages(), outcomes)
}

// filter drops the files for which stays returns false.
func (b *batch) filter(stays func(tempFile) bool) {
	b.files = slices.DeleteFunc(b.files, func(s tempFile) bool {
		stay := stays(s)
		if !stay {
			s.discard()
		}
		return !stay
	})
}

// discardAll removes the files that still have a temporary name.
func (b *batch) discardAll() {
	for _, s := range b.files {
		s.discard()
	}
}

// discard removes a file that still has a temporary name. If that fails, the folder is
// broken, which the next message will show.
func (s tempFile) discard() {
	if s.file != nil {
		_ = s.file.Close() // it may be closed already
		_ = os.Remove(s.file.Name())
	}
}
