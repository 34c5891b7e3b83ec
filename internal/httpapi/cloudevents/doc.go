// Package cloudevents reads events from HTTP requests: CloudEvents 1.0 in the
// structured, batched and binary mode, and plain JSON that has only data. It
// stores nothing and reads untrusted bytes. Every error is a *fanfare.Error with a JSON
// pointer to the attribute.
//
// Attributes that the specification calls REQUIRED are required in its own formats and
// filled in for plain JSON. Conditions, schemas and templates work on JSON, so text data
// becomes a JSON string, and other data is only stored; plain requests (not CloudEvents)
// must be JSON. Extension attributes are stored unchanged.
//
// Sources: CloudEvents 1.0.2 core, "JSON Event Format" 1.0.2 and "HTTP Protocol
// Binding" 1.0.2, https://github.com/cloudevents/spec.
package cloudevents
