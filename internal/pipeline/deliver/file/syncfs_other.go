//go:build !linux

package file

import (
	"errors"
	"os"
)

func ableToSyncWhole(string) bool { return false }

func syncWhole(*os.File) error { return errors.ErrUnsupported }
