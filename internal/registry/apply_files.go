package registry

import (
	"context"

	"fanfare.dev/fanfare/internal/catalog/apply"

	"fanfare.dev/fanfare/internal/catalog"

	"fanfare.dev/fanfare/internal/store/control"

	"fanfare.dev/fanfare"
)

// DraftFiles checks the files of a template that is not kept, and returns it as it would
// be kept, with the files that are not kept yet.
func (r *Registry) DraftFiles(service, name string, parts catalog.TemplateParts) (catalog.TemplateParts, []control.FileRecord, error) {
	return apply.DraftFiles(&r.planOptions, r.config.Load(), service, name, parts)
}

// File returns the bytes of a file that a template has.
func (r *Registry) File(ctx context.Context, sum fanfare.Sum) ([]byte, error) {
	content, err := r.opt.Store.File(ctx, sum)
	if err == nil && fanfare.SumOf(content) != sum {
		err = &fanfare.Error{Code: fanfare.NotFound, Message: "a file of the template is not kept: " + sum.String()}
	}
	return content, err
}
