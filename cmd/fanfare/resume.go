package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"fanfare.dev/fanfare/internal/cli/bulkfile"

	"fanfare.dev/fanfare"
)

// importState is what FILE.progress keeps between two runs.
type importState struct {
	bulkfile.Position
	Digest  string `json:"sha256"` // of the file up to Offset
	Server  string `json:"server"`
	Service string `json:"service,omitempty"`
	Created int64  `json:"created"`
	Updated int64  `json:"updated"`
	Failed  int64  `json:"failed"`
	Errors  int64  `json:"errors_size"` // bytes of FILE.errors

	Unindexed  int64 `json:"unindexed,omitempty"`
	NsPerEvent int64 `json:"ns_per_event,omitempty"`
}

// A journal notes how far an import has come, so that a later run goes on there.
// Nil: of a pipe, nothing can be noted.
type journal struct {
	path string // FILE.progress
	file *os.File
	sum  hash.Hash
	done int64 // bytes of the file in sum
}

// openJournal finds what an earlier run has noted about a file; state has no
// Offset where there is nothing, or where it is not wanted.
func openJournal(file *os.File, restart bool, server, service string) (j *journal, state importState, err error) {
	j = &journal{path: file.Name() + ".progress", file: file, sum: sha256.New()}
	fresh := importState{Server: server, Service: service}
	text, err := os.ReadFile(j.path)
	if errors.Is(err, fs.ErrNotExist) || restart {
		return j, fresh, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil {
		return nil, fresh, j.refuse("cannot be read: %v", err)
	}
	if state.Server != server || state.Service != service {
		return nil, fresh, j.refuse("belongs to an import into another server or service: %s %s", state.Server, state.Service)
	}
	digest, err := j.upTo(state.Offset)
	if err != nil {
		return nil, fresh, err
	}
	if digest != state.Digest {
		return nil, fresh, j.refuse("does not match the import file, which was changed before line %d, the last imported line", state.Line)
	}
	return j, state, nil
}

func (j *journal) refuse(format string, args ...any) error {
	return &fanfare.Error{Code: fanfare.Conflict, Message: j.path + " " + fmt.Sprintf(format, args...), Hint: "use --restart to start from the beginning; lines that were already imported are not stored twice"}
}

// upTo is the digest of the file up to offset, which only grows.
func (j *journal) upTo(offset int64) (string, error) {
	n, err := io.Copy(j.sum, io.NewSectionReader(j.file, j.done, offset-j.done))
	j.done += n
	return hex.EncodeToString(j.sum.Sum(nil)), err
}

// note keeps the state, as a whole or not at all.
func (j *journal) note(state importState) (err error) {
	if j == nil {
		return nil
	}
	if state.Digest, err = j.upTo(state.Offset); err != nil {
		return err
	}
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if err := os.WriteFile(j.path+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(j.path+".new", j.path)
}

// forget is for an import that is done.
func (j *journal) forget() error {
	if j == nil {
		return nil
	}
	if err := os.Remove(j.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
