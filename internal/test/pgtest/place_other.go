//go:build !linux

package pgtest

import "errors"

func (p *Place) enter() error {
	if p.Namespace == "" {
		return nil
	}
	return errors.New("only Linux has network namespaces")
}
