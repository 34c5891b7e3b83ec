// Package frame encodes and decodes the frames between the broker, the clients of sessions and the instances of workers.
// docs/reference/session-protocol.md describes them. A frame is one binary message of a WebSocket: a header of 16 bytes and
// its records. All numbers are little-endian. The Go client, the Go worker and the broker use this package.
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The subprotocols of the WebSocket connections.
const (
	ClientProtocol = "fanfare.session.v1"
	WorkerProtocol = "fanfare.worker.v1"
	AgentProtocol  = "fanfare.agent.v1"
)

// The sizes of a header and of the fixed part of each record.
const (
	HeaderSize    = 16
	RequestSize   = 16
	ExceptionSize = 16
	ResponseSize  = 24
	TaskSize      = 40
	ResultSize    = 24
)

// The limits of the protocol.
const (
	MaxSize     = 4 << 20 // of a frame, in bytes
	MaxBody     = 1 << 20 // of a request or response, in bytes
	MaxID       = 64      // of a request id chosen by the client
	MaxAction   = 64
	MaxUserData = 1 << 10
	MaxRecords  = 1 << 16 // in a frame
)

// A Type is the type of a frame.
type Type uint8

// The frames from a client to the broker.
const (
	Requests Type = 1 // records: Request; First is the number of the first one
	Flush    Type = 2 // First is a token
	End      Type = 3 // First is the number of accepted requests that the client expects
	Close    Type = 4 // Count is 1 to purge the data of the client
	Received Type = 5 // First is the number of the last response that the application has processed
)

// The frames from the broker to a client.
const (
	Welcome   Type = 64 // payload: JSON, see ClientWelcome
	Accepted  Type = 65 // First is the last request that is kept; records: Exception
	Responses Type = 66 // First is the number of the first response; records: Response
	Flushed   Type = 67 // First is the token; payload: two uint64, the last request and the number of accepted requests
	Ended     Type = 68 // First is the number of accepted requests
	Done      Type = 69 // First is the number of responses: each accepted request has one, and all were sent
	Closed    Type = 70 // payload: JSON problem, the reason
	Problem   Type = 71 // payload: JSON problem
	Window    Type = 72 // First is the last request that the client may send
)

// The frames from an instance of a worker to the broker.
const (
	Results Type = 128 // records: Result
	Leaving Type = 129 // the instance takes no more tasks
)

// The frames from the broker to an instance of a worker. Welcome and Problem are the same for both.
const (
	Tasks  Type = 192 // records: Task
	Cancel Type = 193 // payload: Count tags of uint64
	Drain  Type = 194 // finish the tasks and leave; payload: JSON problem, the reason
)

// A Status is the outcome of a task.
type Status uint8

// The statuses. A response has only OK and Fault.
const (
	OK       Status = 0
	Fault    Status = 1 // the body is a FaultBody in JSON
	Retry    Status = 2 // run it again; the body is a FaultBody in JSON
	Returned Status = 3 // the instance has not started it
)

// A Header begins each frame.
type Header struct {
	Type  Type
	Count uint32
	First uint64
}

// A Request is a record of Requests. Its number is that of the frame plus its position.
type Request struct {
	ID       []byte // chosen by the client; empty: none
	Action   []byte
	UserData []byte
	Body     []byte
	Timeout  uint32 // ms; 0: that of the action
}

// An Exception is a record of Accepted: a request that has no response, because the client sent its id before.
type Exception struct {
	Number  uint64
	Refused bool   // the content differs; else the request is a repetition
	Problem []byte // JSON problem, if refused
}

// A Response is a record of Responses. Its number is that of the frame plus its position.
type Response struct {
	Request  uint64 // number of the request
	ID       []byte
	UserData []byte
	Body     []byte
	Status   Status
	Last     bool   // no response follows
	Attempts uint16 // how often the request was dispatched
}

// A Task is a record of Tasks.
type Task struct {
	Tag     uint64 // identifies the task on this connection
	Session uint64
	Request uint64 // number in the stream of the client
	Client  uint32 // number of the client in the session
	Timeout uint32 // ms that are left; 0: no limit
	Attempt uint16 // from 1
	Action  []byte
	Body    []byte
}

// A Result is a record of Results.
type Result struct {
	Tag    uint64
	Micros uint32 // how long the task ran
	Status Status
	Body   []byte
}

// A FaultBody is the body of a fault.
type FaultBody struct {
	Code    string `json:"code"`             // fault, timeout, lost, cancelled or a word of the worker
	Message string `json:"message"`          // what went wrong
	Detail  string `json:"detail,omitempty"` // such as a stack trace
}

// A ClientWelcome is the first frame that a client receives.
type ClientWelcome struct {
	Session       string `json:"session"`
	Client        string `json:"client"`
	Kind          string `json:"kind"`
	Requests      uint64 `json:"requests"`       // number of the last request that is kept: the client continues after it
	Accepted      uint64 `json:"accepted"`       // number of requests that are kept, without repetitions
	Responses     uint64 `json:"responses"`      // number of responses that exist
	FirstResponse uint64 `json:"first_response"` // the first one that still exists
	From          uint64 `json:"from"`           // the first one that this connection receives
	Ended         bool   `json:"ended"`
	Window        uint64 `json:"window"`            // number of the last request that the client may send
	MessageLimit  int    `json:"message_limit"`     // bytes of a body
	Heartbeat     int    `json:"heartbeat_seconds"` // the broker sends a ping this often
}

// A WorkerWelcome is the first frame that an instance receives.
type WorkerWelcome struct {
	Worker       string `json:"worker"`
	Instance     string `json:"instance"`
	Capacity     int    `json:"capacity"` // tasks that it runs at the same time
	MessageLimit int    `json:"message_limit"`
	Heartbeat    int    `json:"heartbeat_seconds"`
}

var errShort = errors.New("the frame is too short for its number of records")

// AppendHeader appends a header.
func AppendHeader(b []byte, h Header) []byte {
	b = append(b, byte(h.Type), 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, h.Count)
	return binary.LittleEndian.AppendUint64(b, h.First)
}

// SetHeader overwrites the header at the start of b, which has at least HeaderSize bytes.
func SetHeader(b []byte, h Header) { AppendHeader(b[:0], h) }

// Parse splits a frame into its header and the rest.
func Parse(b []byte) (Header, []byte, error) {
	if len(b) < HeaderSize {
		return Header{}, nil, fmt.Errorf("a frame has %d bytes, but its header alone needs %d", len(b), HeaderSize)
	}
	h := Header{Type(b[0]), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:])}
	if h.Count > MaxRecords {
		return Header{}, nil, fmt.Errorf("a frame has %d records; at most %d are allowed", h.Count, MaxRecords)
	}
	return h, b[HeaderSize:], nil
}

// Token returns a frame without records.
func Token(t Type, count uint32, first uint64) []byte {
	return AppendHeader(make([]byte, 0, HeaderSize), Header{t, count, first})
}

// JSON returns a frame with a JSON payload.
func JSON(t Type, payload []byte) []byte {
	return append(AppendHeader(make([]byte, 0, HeaderSize+len(payload)), Header{Type: t}), payload...)
}

// AppendRequest appends a record. The lengths of its fields must be within the limits.
func AppendRequest(b []byte, r *Request) []byte {
	b = binary.LittleEndian.AppendUint32(b, length32(r.Body))
	b = binary.LittleEndian.AppendUint32(b, r.Timeout)
	b = binary.LittleEndian.AppendUint16(b, length16(r.ID))
	b = binary.LittleEndian.AppendUint16(b, length16(r.Action))
	b = binary.LittleEndian.AppendUint16(b, length16(r.UserData))
	b = append(b, 0, 0)
	b = append(b, r.ID...)
	b = append(b, r.Action...)
	b = append(b, r.UserData...)
	return append(b, r.Body...)
}

// NextRequest decodes the record at the start of b and returns the rest. Its fields share the memory of b.
func NextRequest(b []byte, r *Request) ([]byte, error) {
	if len(b) < RequestSize {
		return nil, errShort
	}
	body, id, action, data := int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint16(b[8:])), int(binary.LittleEndian.Uint16(b[10:])), int(binary.LittleEndian.Uint16(b[12:]))
	r.Timeout = binary.LittleEndian.Uint32(b[4:])
	b = b[RequestSize:]
	if len(b) < id+action+data+body {
		return nil, errShort
	}
	r.ID, b = b[:id:id], b[id:]
	r.Action, b = b[:action:action], b[action:]
	r.UserData, b = b[:data:data], b[data:]
	r.Body, b = b[:body:body], b[body:]
	return b, nil
}

// AppendException appends a record.
func AppendException(b []byte, e *Exception) []byte {
	b = binary.LittleEndian.AppendUint64(b, e.Number)
	b = binary.LittleEndian.AppendUint32(b, length32(e.Problem))
	b = append(b, flag(e.Refused), 0, 0, 0)
	return append(b, e.Problem...)
}

// NextException decodes the record at the start of b and returns the rest.
func NextException(b []byte, e *Exception) ([]byte, error) {
	if len(b) < ExceptionSize {
		return nil, errShort
	}
	e.Number, e.Refused = binary.LittleEndian.Uint64(b), b[12] != 0
	size := int(binary.LittleEndian.Uint32(b[8:]))
	b = b[ExceptionSize:]
	if len(b) < size {
		return nil, errShort
	}
	e.Problem = b[:size:size]
	return b[size:], nil
}

// AppendResponse appends a record.
func AppendResponse(b []byte, r *Response) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.Request)
	b = binary.LittleEndian.AppendUint32(b, length32(r.Body))
	b = binary.LittleEndian.AppendUint16(b, length16(r.ID))
	b = binary.LittleEndian.AppendUint16(b, length16(r.UserData))
	b = append(b, byte(r.Status), flag(r.Last))
	b = binary.LittleEndian.AppendUint16(b, r.Attempts)
	b = append(b, 0, 0, 0, 0)
	b = append(b, r.ID...)
	b = append(b, r.UserData...)
	return append(b, r.Body...)
}

// NextResponse decodes the record at the start of b and returns the rest. Its fields share the memory of b.
func NextResponse(b []byte, r *Response) ([]byte, error) {
	if len(b) < ResponseSize {
		return nil, errShort
	}
	r.Request = binary.LittleEndian.Uint64(b)
	body, id, data := int(binary.LittleEndian.Uint32(b[8:])), int(binary.LittleEndian.Uint16(b[12:])), int(binary.LittleEndian.Uint16(b[14:]))
	r.Status, r.Last, r.Attempts = Status(b[16]), b[17] != 0, binary.LittleEndian.Uint16(b[18:])
	b = b[ResponseSize:]
	if len(b) < id+data+body {
		return nil, errShort
	}
	r.ID, b = b[:id:id], b[id:]
	r.UserData, b = b[:data:data], b[data:]
	r.Body, b = b[:body:body], b[body:]
	return b, nil
}

// AppendTask appends a record.
func AppendTask(b []byte, t *Task) []byte {
	b = binary.LittleEndian.AppendUint64(b, t.Tag)
	b = binary.LittleEndian.AppendUint64(b, t.Session)
	b = binary.LittleEndian.AppendUint64(b, t.Request)
	b = binary.LittleEndian.AppendUint32(b, t.Client)
	b = binary.LittleEndian.AppendUint32(b, length32(t.Body))
	b = binary.LittleEndian.AppendUint32(b, t.Timeout)
	b = binary.LittleEndian.AppendUint16(b, length16(t.Action))
	b = binary.LittleEndian.AppendUint16(b, t.Attempt)
	b = append(b, t.Action...)
	return append(b, t.Body...)
}

// NextTask decodes the record at the start of b and returns the rest. Its fields share the memory of b.
func NextTask(b []byte, t *Task) ([]byte, error) {
	if len(b) < TaskSize {
		return nil, errShort
	}
	t.Tag, t.Session, t.Request = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	t.Client, t.Timeout, t.Attempt = binary.LittleEndian.Uint32(b[24:]), binary.LittleEndian.Uint32(b[32:]), binary.LittleEndian.Uint16(b[38:])
	body, action := int(binary.LittleEndian.Uint32(b[28:])), int(binary.LittleEndian.Uint16(b[36:]))
	b = b[TaskSize:]
	if len(b) < action+body {
		return nil, errShort
	}
	t.Action, b = b[:action:action], b[action:]
	t.Body, b = b[:body:body], b[body:]
	return b, nil
}

// AppendResult appends a record.
func AppendResult(b []byte, r *Result) []byte {
	b = binary.LittleEndian.AppendUint64(b, r.Tag)
	b = binary.LittleEndian.AppendUint32(b, length32(r.Body))
	b = binary.LittleEndian.AppendUint32(b, r.Micros)
	b = append(b, byte(r.Status), 0, 0, 0, 0, 0, 0, 0)
	return append(b, r.Body...)
}

// NextResult decodes the record at the start of b and returns the rest. Its fields share the memory of b.
func NextResult(b []byte, r *Result) ([]byte, error) {
	if len(b) < ResultSize {
		return nil, errShort
	}
	r.Tag, r.Micros, r.Status = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[12:]), Status(b[16])
	body := int(binary.LittleEndian.Uint32(b[8:]))
	b = b[ResultSize:]
	if len(b) < body {
		return nil, errShort
	}
	r.Body = b[:body:body]
	return b[body:], nil
}

func length16(b []byte) uint16 {
	if len(b) > math.MaxUint16 {
		panic("a field of a frame is longer than its limit")
	}
	return uint16(len(b))
}

func length32(b []byte) uint32 {
	if len(b) > MaxSize {
		panic("a field of a frame is longer than its limit")
	}
	return uint32(len(b))
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
