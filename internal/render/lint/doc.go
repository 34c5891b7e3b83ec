// Package lint checks a template for what mail readers, screen readers and spam filters
// dislike. Applying and previewing a template call it.
//
// State: none. The network is not used: a link is checked by its syntax.
//
// Failure: none. Findings are hints: a template with findings is applied and sent. The only
// error, RenderFails, is reported by the caller. Where a value decides, there is no finding.
// It reads style attributes, no style sheets.
package lint
