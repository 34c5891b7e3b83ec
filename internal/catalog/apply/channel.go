package apply

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/inputerror"
)

func (pl *Plan) channel(name string, spec *document.ChannelSpec) {
	at := inputerror.Pointer("channels", name)
	old := pl.Service.Channels[name]
	if spec.Delete {
		if old != nil {
			pl.DeletedChannels = append(pl.DeletedChannels, old)
			deleteMember(pl, pl.Service.Channels, catalog.KindChannel, name, uint32(old.Number), old.ChannelSettings)
		}
		return
	}
	ch := &catalog.Channel{Service: pl.Service.Name, Name: name, ChannelSettings: spec.ChannelSettings}
	switch {
	case old != nil:
		changed := catalog.FieldChanges(old.ChannelSettings, ch.ChannelSettings)
		if len(changed) == 0 {
			return
		}
		if old.AddressKind() != ch.AddressKind() {
			pl.fail(at+"/driver", inputerror.Invalid("", "create another channel", "the channel cannot be changed from %s to %s addresses", old.AddressKindName(), ch.AddressKindName()))
		}
		ch.Number = old.Number
		pl.Diff.Add(catalog.KindChannel, name, "update", changed)
	default:
		pl.Diff.Add(catalog.KindChannel, name, "create", nil)
		ch.Number = pl.channelNumber(name)
	}
	if err := pl.checkOperatorFields(ch, old); err != nil {
		pl.fail(at, err)
	} else {
		pl.checkKeys(at, ch, old)
	}
	pl.Service.Channels[name], pl.To.Channels[ch.Number] = ch, ch
	pl.addRecord(catalog.KindChannel, uint32(ch.Number), name, ch.ChannelSettings, false)
}

// checkOperatorFields refuses fields that only an operator may set.
func (pl *Plan) checkOperatorFields(ch, old *catalog.Channel) error {
	if pl.actor == nil || pl.actor.Tenant == "" {
		return nil
	}
	return ch.CheckOperatorFields(old)
}

// checkKeys checks each key that the channel did not have before.
func (pl *Plan) checkKeys(at string, ch, old *catalog.Channel) {
	if pl.opt.CheckKey == nil {
		return
	}
	for i := range ch.DKIM {
		if old != nil && slices.Contains(old.DKIM, ch.DKIM[i]) {
			continue
		}
		if err := pl.opt.CheckKey(ch, &ch.DKIM[i]); err != nil {
			pl.fail(at+"/dkim/"+strconv.Itoa(i), err)
		}
	}
}

// channelNumber is the number that the name had before it was deleted, or a new
// one.
func (pl *Plan) channelNumber(name string) uint16 {
	for number, c := range pl.To.Channels {
		if c.Service == pl.Service.Name && c.Name == name {
			return number
		}
	}
	if len(pl.To.Channels) >= math.MaxUint16 {
		pl.fail(inputerror.Pointer("channels", name), &fanfare.Error{Code: fanfare.TooLarge, Message: "the server already has the maximum number of channels"})
	}
	return nextNumber(maps.Keys(pl.To.Channels))
}
