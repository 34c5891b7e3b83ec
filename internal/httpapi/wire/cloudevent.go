package wire

import "time"

// A CloudEvent is an event in the JSON event format of CloudEvents 1.0.2. Any
// further member whose value is a string, a number or a Boolean is an extension
// attribute: it is stored, shown in the trace and available in templates.
type CloudEvent struct {
	SpecVersion     string    `json:"specversion" enum:"1.0"`
	ID              string    `json:"id" minLength:"1" doc:"unique for the source; an event with a known source and id is a duplicate"`
	Source          string    `json:"source" minLength:"1" doc:"URI-reference of the sender"`
	Type            string    `json:"type" minLength:"1" doc:"the topic, unless the path specifies it"`
	Subject         string    `json:"subject,omitempty"`
	Time            time.Time `json:"time,omitzero"`
	DataContentType string    `json:"datacontenttype,omitempty" doc:"media type of the data; default: application/json"`
	DataSchema      string    `json:"dataschema,omitempty" format:"uri"`
	Data            any       `json:"data,omitempty" doc:"event data, which must match the schema of the topic"`
	DataBase64      string    `json:"data_base64,omitempty" contentEncoding:"base64" doc:"binary data in base64, instead of data"`

	_ struct{} `additionalProperties:"true"`
}
