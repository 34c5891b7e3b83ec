// Package lint looks at a template as mail readers, screen readers and filters
// against spam will, and says what they are going to mind.
//
// State: none, and nothing is asked of the network: a link is judged by its shape.
// What it finds are hints, never errors: a template with findings is applied and
// sent as any other. RenderFails alone is an error, and told by the caller.
//
// Failure: there is none. Liquid is looked past: where a value decides, nothing is
// said. Of style sheets nothing is known, only of style attributes.
package lint
