package clientconfig

import (
	"encoding/xml"
	"slices"
	"testing"
)

var all = Servers{Host: "mail.example.org", IMAPS: 993, IMAP: 143, Submissions: 465, Submission: 587, WebHost: "news.example.org", WebPort: 443}

func TestAutoconfigHasTheFormThatThunderbirdReads(t *testing.T) {
	const want = `<?xml version="1.0" encoding="UTF-8"?>
<clientConfig version="1.1">
  <emailProvider id="example.org">
    <domain>example.org</domain>
    <displayName>example.org</displayName>
    <displayShortName>example.org</displayShortName>
    <incomingServer type="imap">
      <hostname>mail.example.org</hostname>
      <port>993</port>
      <socketType>SSL</socketType>
      <username>%EMAILADDRESS%</username>
      <authentication>password-cleartext</authentication>
    </incomingServer>
    <outgoingServer type="smtp">
      <hostname>mail.example.org</hostname>
      <port>587</port>
      <socketType>STARTTLS</socketType>
      <username>%EMAILADDRESS%</username>
      <authentication>password-cleartext</authentication>
    </outgoingServer>
  </emailProvider>
</clientConfig>
`
	some := Servers{Host: "mail.example.org", IMAPS: 993, Submission: 587}
	got, err := some.Autoconfig("example.org")
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestADomainCannotAddElements(t *testing.T) {
	body, err := all.Autoconfig(`x"><incomingServer/>&`)
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := xml.Unmarshal(body, &d); err != nil || d.Provider.Domain != `x"><incomingServer/>&` || len(d.Provider.Incoming) != 2 {
		t.Errorf("%v, %+v", err, d)
	}
}

func TestRecordsNameOnlyWhatIsServed(t *testing.T) {
	want := []Record{
		{"_imaps._tcp.example.com.", "SRV", "0 1 993 mail.example.org."},
		{"_imap._tcp.example.com.", "SRV", "10 1 143 mail.example.org."},
		{"_pop3s._tcp.example.com.", "SRV", "0 0 0 ."},
		{"_pop3._tcp.example.com.", "SRV", "0 0 0 ."},
		{"_submissions._tcp.example.com.", "SRV", "0 1 465 mail.example.org."},
		{"_submission._tcp.example.com.", "SRV", "10 1 587 mail.example.org."},
		{"_jmap._tcp.example.com.", "SRV", "0 1 443 news.example.org."},
		{"autoconfig.example.com.", "CNAME", "news.example.org."},
	}
	if got := all.Records("example.com"); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	none := Servers{}
	for _, r := range none.Records("example.com") {
		if r.Value != "0 0 0 ." {
			t.Errorf("%v", r)
		}
	}
	if got := none.Incoming(); got != nil {
		t.Errorf("%v", got)
	}
}
