package core

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// On makes a Method of a function with typed arguments. Arguments that A does not have are refused. If A embeds InAccount, the
// account must be that of the user.
func On[A any](capability string, run func(ctx context.Context, c *Call, arguments *A) (any, error)) Method {
	known := fieldsOf(reflect.TypeFor[A]())
	return Method{capability, func(ctx context.Context, c *Call, arguments Object) (any, error) {
		var a A
		if err := decode(arguments, reflect.ValueOf(&a).Elem(), known); err != nil {
			return nil, err
		}
		if in, ok := any(&a).(interface{ account() ID }); ok {
			switch in.account() {
			case "":
				return nil, Fail(InvalidArguments, "the argument accountId is missing")
			case c.Account:
			default:
				return nil, Fail(AccountNotFound, "")
			}
		}
		return run(ctx, c, &a)
	}}
}

// InAccount is the argument of all methods on the data of an account.
type InAccount struct {
	AccountID ID `json:"accountId"`
}

func (a *InAccount) account() ID { return a.AccountID }

// fieldsOf returns the indexes of the fields by their names in JSON.
func fieldsOf(t reflect.Type) map[string][]int {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f.Index
		}
	}
	return fields
}

func decode(arguments Object, into reflect.Value, known map[string][]int) error {
	for _, m := range arguments {
		index, ok := known[m.Name]
		if !ok {
			return Fail(InvalidArguments, fmt.Sprintf("the method has no argument %.80q", m.Name))
		}
		if err := json.Unmarshal(m.Value, into.FieldByIndex(index).Addr().Interface()); err != nil {
			return Fail(InvalidArguments, "the argument "+m.Name+" "+Wrong(err))
		}
	}
	return nil
}

// DecodeProperties reads the properties of a record. The fields of record are named by their tags. The error is a SetError with the names
// of the properties that are wrong.
func DecodeProperties(properties Object, record any) *SetError {
	into := reflect.ValueOf(record).Elem()
	known := fieldsOf(into.Type())
	var wrong, texts []string
	for _, m := range properties {
		index, ok := known[m.Name]
		if !ok {
			wrong, texts = append(wrong, m.Name), append(texts, fmt.Sprintf("%.80s is not a property that can be set", m.Name))
			continue
		}
		if err := json.Unmarshal(m.Value, into.FieldByIndex(index).Addr().Interface()); err != nil {
			wrong, texts = append(wrong, m.Name), append(texts, m.Name+" "+Wrong(err))
		}
	}
	if wrong != nil {
		return Invalid(strings.Join(texts, "; "), wrong...)
	}
	return nil
}

// Wrong describes an error of decoding JSON, after the name of the value.
func Wrong(err error) string {
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		text := "has the wrong type"
		if kind.Field != "" {
			text += " at " + kind.Field
		}
		return text + ": " + kind.Value + " is not permitted"
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return "cannot be read"
	}
	return "is not valid: " + err.Error()
}

// An UnsignedInt is an UnsignedInt (RFC 8620, section 1.3).
type UnsignedInt int64

// UnmarshalJSON reads a number from 0 to MaxInt.
func (n *UnsignedInt) UnmarshalJSON(text []byte) error {
	i, err := integer(text)
	if err != nil || i < 0 {
		return fmt.Errorf("%.40s is not a whole number from 0 to 2^53-1", text)
	}
	*n = UnsignedInt(i)
	return nil
}

// An Int is an Int (RFC 8620, section 1.3).
type Int int64

// UnmarshalJSON reads a number from -MaxInt to MaxInt.
func (n *Int) UnmarshalJSON(text []byte) error {
	i, err := integer(text)
	if err != nil {
		return fmt.Errorf("%.40s is not a whole number from -2^53+1 to 2^53-1", text)
	}
	*n = Int(i)
	return nil
}

func integer(text []byte) (int64, error) {
	var i int64
	if err := json.Unmarshal(text, &i); err != nil || string(text) == "null" {
		return 0, errors.New("not a whole number")
	}
	if i > MaxInt || i < -MaxInt {
		return 0, errors.New("out of range")
	}
	return i, nil
}
