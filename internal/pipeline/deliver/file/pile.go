package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
)

// A pile is letters on their way into a folder.
type pile struct {
	folder string
	mark   Mark
	sheets []sheet
}

// A sheet is one letter in a file that nobody looks at.
type sheet struct {
	letter *fanfare.Letter
	part   *os.File
}

// write puts letters into files of their own. The first that cannot be written goes
// back, and so do those behind it.
func (p *pile) write(desk fanfare.Desk, letters []*fanfare.Letter) error {
	for i, letter := range letters {
		part, err := write(p.folder, p.mark, letter)
		if err != nil {
			for _, rest := range slices.Backward(letters[i:]) { // the first is in front again at last
				desk.Return(rest)
			}
			return fmt.Errorf("folder of the channel: %w", err)
		}
		p.sheets = append(p.sheets, sheet{letter, part})
	}
	return nil
}

// write puts a letter into a file. The envelope stands in front, as a delivering
// mail server would add it (RFC 5321 section 4.4).
func write(folder string, mark Mark, letter *fanfare.Letter) (part *os.File, err error) {
	part, err = os.CreateTemp(folder, mark.prefix()+"*")
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(part, "Return-Path: <"+letter.From+">\r\nDelivered-To: "+letter.To+"\r\n")
	if err == nil {
		_, err = part.Write(letter.Body)
	}
	if err == nil {
		_, err = part.Write(letter.Enclosed)
	}
	if err != nil {
		return nil, errors.Join(err, part.Close(), os.Remove(part.Name()))
	}
	return part, nil
}

// sync makes what was written durable. A letter of which that fails goes back.
func (p *pile) sync(desk fanfare.Desk, disk *syncer) (failed error) {
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
		desk.Return(s.letter)
		s.discard()
		p.sheets = slices.Delete(p.sheets, i, i+1)
	}
	return failed
}

// release asks for all letters, and forgets those that must not leave.
func (p *pile) release(desk fanfare.Desk) {
	for len(p.sheets) > 0 {
		left, released := p.ask(desk)
		if released {
			return
		}
		p.keep(func(s sheet) bool { return slices.Contains(left, s.letter) })
	}
}

func (p *pile) ask(desk fanfare.Desk) (left []*fanfare.Letter, released bool) {
	if len(p.sheets) == 1 {
		return nil, desk.Release(p.sheets[0].letter)
	}
	return desk.(fanfare.Together).ReleaseAll(p.letters())
}

func (p *pile) letters() []*fanfare.Letter {
	letters := make([]*fanfare.Letter, len(p.sheets))
	for i, s := range p.sheets {
		letters[i] = s.letter
	}
	return letters
}

// place gives the files their names, and syncs those too. A file whose name is not
// sure to last has not arrived.
func (p *pile) place() (outcomes []fanfare.Outcome, failed error) {
	outcomes = slices.Repeat([]fanfare.Outcome{{Verdict: fanfare.Taken, Text: "written", Relay: p.folder}}, len(p.sheets))
	refuse := func(i int, err error) {
		text := []byte("could not be written: " + err.Error())
		outcomes[i].Verdict, outcomes[i].Text = fanfare.Temporary, string(deliver.AppendLine(nil, text, deliver.MaxLine))
	}
	for i, s := range p.sheets {
		if err := os.Rename(s.part.Name(), filepath.Join(p.folder, s.letter.Delivery.String()+".eml")); err != nil {
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

// report gives what came of the letters.
func (p *pile) report(desk fanfare.Desk, outcomes []fanfare.Outcome) error {
	if len(p.sheets) == 1 {
		return desk.Report(p.sheets[0].letter, outcomes[0])
	}
	return desk.(fanfare.Together).ReportAll(p.letters(), outcomes)
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
// folder is broken, which the next letter will find.
func (s sheet) discard() {
	if s.part != nil {
		_ = s.part.Close() // it may have been
		_ = os.Remove(s.part.Name())
	}
}
