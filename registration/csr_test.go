package registration

import (
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

const (
	perCluster = "system:open-cluster-management:cluster:c1:addon:hello"
	perAddOn   = "system:open-cluster-management:addon:hello"
)

// hostile is a request for more than the agent may have, or of an odd form. Without a want the
// request is approved.
type hostile struct {
	reason string
	change func(*ask)
	want   Reason
}

// requesters are requests by other users, or about other objects.
func requesters() map[string]hostile {
	label := func(key, value string) func(*ask) {
		return func(a *ask) { a.csr.Labels["open-cluster-management.io/"+key] = value }
	}
	user := func(name string) func(*ask) { return func(a *ask) { a.csr.Spec.Username = name } }
	return map[string]hostile{
		"Good":            {reason: "what OCM's klusterlet sends", change: func(*ask) {}},
		"OtherAgentName":  {reason: "a klusterlet that was installed again has another name", change: user("system:open-cluster-management:c1:zzzzz")},
		"OtherCluster":    {"asks in another cluster's name", user("system:open-cluster-management:c2:9bkfw"), ReasonWrongRequester},
		"LabelOfOther":    {"labels are for anybody to set", label("cluster-name", "c2"), ReasonWrongRequester},
		"PrefixOfOther":   {"c1 is how c10 begins; OCM compares beginnings", user("system:open-cluster-management:c10:9bkfw"), ReasonWrongRequester},
		"LabelIsPrefix":   {"and the other way round", label("cluster-name", "c"), ReasonWrongRequester},
		"NoAgentName":     {"a cluster is not its agent", user("system:open-cluster-management:c1"), ReasonWrongRequester},
		"EmptyAgentName":  {"nor with nothing behind it", user("system:open-cluster-management:c1:"), ReasonWrongRequester},
		"TooManyParts":    {"three parts are another form", user("system:open-cluster-management:c1:9bkfw:x"), ReasonWrongRequester},
		"AddOnAgent":      {"an add-on's agent requests nothing, not even for itself", user(perCluster + ":agent:hello-agent"), ReasonWrongRequester},
		"ServiceAccount":  {"an account in the cluster's namespace is not its klusterlet", user("system:serviceaccount:c1:klusterlet"), ReasonWrongRequester},
		"Admin":           {"an admin can approve by hand", user("kubernetes-admin"), ReasonWrongRequester},
		"Anonymous":       {"no requester", user(""), ReasonWrongRequester},
		"CyrillicCluster": {"с1 is not c1", user("system:open-cluster-management:с1:9bkfw"), ReasonWrongRequester},
		"UpperCase":       {"names are compared as they are", user("system:open-cluster-management:C1:9bkfw"), ReasonWrongRequester},
		"LeadingSpace":    {"to the byte", user(" system:open-cluster-management:c1:9bkfw"), ReasonWrongRequester},
		"NoClusterGroup":  {"the API server lists the requester's groups", func(a *ask) { a.csr.Spec.Groups = []string{"system:authenticated"} }, ReasonWrongRequester},
		"GroupOfOther":    {"another cluster's group", func(a *ask) { a.csr.Spec.Groups[0] = "system:open-cluster-management:c2" }, ReasonWrongRequester},
		"GRPC": {"the annotation is for anybody to set", func(a *ask) {
			a.csr.Spec.Username = "system:serviceaccount:open-cluster-management-hub:grpc-server-sa"
			a.csr.Annotations = map[string]string{"open-cluster-management.io/csr-user": "system:open-cluster-management:c1:9bkfw"}
		}, ReasonThroughGRPC},
		"AWS": {"EKS calls a klusterlet what its cluster is called, and so may another be", func(a *ask) {
			a.csr.Spec.Username, a.csr.Spec.Groups = "c1", []string{"open-cluster-management:c1", "system:authenticated"}
		}, ReasonWrongRequester},
		"NoLabels":          {"about nothing", func(a *ask) { a.csr.Labels = nil }, ReasonWrongRequester},
		"NoAddOnLabel":      {"about no add-on", label("addon-name", ""), ReasonWrongRequester},
		"ClusterUnknown":    {"the cluster was removed", func(a *ask) { a.facts.Cluster = Absent }, ReasonClusterNotReady},
		"ClusterUnaccepted": {"the hub has not let it in", func(a *ask) { a.facts.Cluster = Unaccepted }, ReasonClusterNotReady},
		"ClusterLeaving":    {"it is being removed", func(a *ask) { a.facts.Cluster = Leaving }, ReasonClusterNotReady},
		"AddOnUnknown":      {"not installed there", func(a *ask) { a.facts.AddOn = Absent }, ReasonAddOnNotReady},
		"AddOnLeaving":      {"being removed there", func(a *ask) { a.facts.AddOn = Leaving }, ReasonAddOnNotReady},
		"OtherSigner":       {"a signer its template does not name", func(a *ask) { a.csr.Spec.SignerName = "example.com/other" }, ReasonNotAsked},
		"KubeletSigner":     {"a node's certificate", func(a *ask) { a.csr.Spec.SignerName = certificatesv1.KubeAPIServerClientKubeletSignerName }, ReasonNotAsked},
		"KubernetesSigner": {"a custom signer is never Kubernetes' own, whose names are those of the hub", func(a *ask) {
			a.custom()
			a.facts.Asked = a.facts.Asked[1:]
			a.facts.Asked[0].CustomSigner.SignerName, a.csr.Spec.SignerName = kubeSigner, kubeSigner
		}, ReasonNotAsked},
		"NothingAsked":          {"the applied template registers nothing", func(a *ask) { a.facts.Asked = nil }, ReasonNotAsked},
		"OnlyCustomAsked":       {"the hub's own signer is not among what it registers", func(a *ask) { a.facts.Asked = a.facts.Asked[1:] }, ReasonNotAsked},
		"AddOnLabelIsAnother's": {"another add-on that the cluster has", label("addon-name", "hell"), ReasonWrongSubject},
	}
}

// names are requests for the names of others.
func names() map[string]hostile {
	cn := func(name string) func(*ask) { return func(a *ask) { a.request.Subject.CommonName = name } }
	groups := func(names ...string) func(*ask) { return func(a *ask) { a.groups(names...) } }
	return map[string]hostile{
		"WithAuthenticated":    {reason: "OCM before 1.3 lists it; every user is in it", change: groups(perCluster, perAddOn, "system:authenticated")},
		"OtherOrder":           {reason: "a set has no order", change: groups(perAddOn, perCluster)},
		"AuthenticatedTwice":   {"each group once", groups(perCluster, perAddOn, "system:authenticated", "system:authenticated"), ReasonWrongSubject},
		"Masters":              {"the group with all rights", groups(perCluster, perAddOn, "system:masters"), ReasonWrongSubject},
		"MastersForOne":        {"in the place of another", groups(perCluster, "system:masters"), ReasonWrongSubject},
		"OneGroup":             {"too few", groups(perCluster), ReasonWrongSubject},
		"NoGroup":              {"none", groups(), ReasonWrongSubject},
		"GroupTwice":           {"each once", groups(perCluster, perAddOn, perAddOn), ReasonWrongSubject},
		"GroupOfCluster2":      {"another cluster's agents", groups("system:open-cluster-management:cluster:c2:addon:hello", perAddOn), ReasonWrongSubject},
		"GroupOfOtherAddOn":    {"another add-on's agents", groups(perCluster, "system:open-cluster-management:addon:other"), ReasonWrongSubject},
		"GroupOfKlusterlets":   {"the klusterlets' own group", groups(perCluster, perAddOn, "system:open-cluster-management:managed-clusters"), ReasonWrongSubject},
		"UserIsKlusterlet":     {"the klusterlet's own name", cn("system:open-cluster-management:c1:9bkfw"), ReasonWrongSubject},
		"UserOfCluster2":       {"another cluster's agent", cn("system:open-cluster-management:cluster:c2:addon:hello:agent:hello-agent"), ReasonWrongSubject},
		"UserPrefix":           {"longer by one letter", cn(perCluster + ":agent:hello-agentx"), ReasonWrongSubject},
		"UserIsAdmin":          {"another subject", cn("kubernetes-admin"), ReasonWrongSubject},
		"NoUser":               {"no name", cn(""), ReasonWrongSubject},
		"UserWithNUL":          {"some compare up to it", cn(perCluster + ":agent:hello-agent\x00x"), ReasonWrongSubject},
		"UnicodeTwin":          {"ℎello looks like hello", cn("system:open-cluster-management:cluster:c1:addon:ℎello:agent:hello-agent"), ReasonWrongSubject},
		"TwoUsers":             {"which one counts differs between libraries", extraName(asn1.ObjectIdentifier{2, 5, 4, 3}, "kubernetes-admin"), ReasonWrongSubject},
		"Unit":                 {"units that the template does not name", func(a *ask) { a.request.Subject.OrganizationalUnit = []string{"x"} }, ReasonWrongSubject},
		"Country":              {"an attribute without use", func(a *ask) { a.request.Subject.Country = []string{"DE"} }, ReasonWrongSubject},
		"UID":                  {"newer API servers read a uid from a certificate", extraName(asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, "x"), ReasonWrongSubject},
		"CustomGood":           {reason: "the subject the template names", change: func(a *ask) { a.custom() }},
		"CustomOtherUser":      {"another user for the custom signer", func(a *ask) { a.custom(); a.request.Subject.CommonName = "admin" }, ReasonWrongSubject},
		"CustomOtherUnit":      {"another unit", func(a *ask) { a.custom(); a.request.Subject.OrganizationalUnit = []string{"other"} }, ReasonWrongSubject},
		"CustomNoUnit":         {"a unit less", func(a *ask) { a.custom(); a.request.Subject.OrganizationalUnit = nil }, ReasonWrongSubject},
		"CustomAsKube":         {"the hub's subject from the custom signer", func(a *ask) { a.csr.Spec.SignerName = customSigner }, ReasonWrongSubject},
		"KubeAsCustom":         {"the custom subject from the hub's signer", func(a *ask) { a.custom(); a.csr.Spec.SignerName = kubeSigner }, ReasonWrongSubject},
		"CustomByOtherCluster": {"OCM approves whatever asks a custom signer", func(a *ask) { a.custom(); a.csr.Spec.Username = "system:open-cluster-management:c2:x" }, ReasonWrongRequester},
	}
}

// forms are requests of a form that no klusterlet sends.
func forms() map[string]hostile {
	usages := func(u ...certificatesv1.KeyUsage) func(*ask) { return func(a *ask) { a.csr.Spec.Usages = u } }
	seconds := func(n int32) func(*ask) { return func(a *ask) { a.csr.Spec.ExpirationSeconds = &n } }
	key := func(name string) func(*ask) { return func(a *ask) { a.key = name } }
	dns := func(names ...string) func(*ask) { return func(a *ask) { a.request.DNSNames = names } }
	text := func(f func([]byte) []byte) func(*ask) { return func(a *ask) { a.text = f } }
	return map[string]hostile{
		"NoServerName":   {reason: "the name is of no use", change: dns()},
		"OtherName":      {"another server's name", dns("kubernetes.default.svc"), ReasonWrongExtension},
		"TwoNames":       {"a name more", dns("hello.addon.open-cluster-management.io", "kubernetes"), ReasonWrongExtension},
		"NameTwice":      {"once is enough", dns("hello.addon.open-cluster-management.io", "hello.addon.open-cluster-management.io"), ReasonWrongExtension},
		"IP":             {"an address", func(a *ask) { a.request.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }, ReasonWrongExtension},
		"Email":          {"a mailbox", func(a *ask) { a.request.EmailAddresses = []string{"root@example.com"} }, ReasonWrongExtension},
		"URI":            {"an identity in another system", func(a *ask) { a.request.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }, ReasonWrongExtension},
		"OtherNameForm":  {"a kind of name that Go's parser skips", otherName, ReasonWrongExtension},
		"CA":             {"wants to be an authority", extension(asn1.ObjectIdentifier{2, 5, 29, 19}, []byte{0x30, 3, 1, 1, 0xff}), ReasonWrongExtension},
		"ExtKeyUsage":    {"wants to be a server", extension(asn1.ObjectIdentifier{2, 5, 29, 37}, []byte{0x30, 0}), ReasonWrongExtension},
		"RSA2048":        {reason: "a common key", change: key("rsa2048")},
		"Ed25519":        {reason: "a good key", change: key("ed25519")},
		"RSA1024":        {"a weak key", key("rsa1024"), ReasonWeakKey},
		"P224":           {"a weak curve", key("p224"), ReasonWeakKey},
		"HugeKey":        {"to check its signature takes time; it is not checked", text(withHugeKey), ReasonWeakKey},
		"ClientOnly":     {reason: "less than a klusterlet asks for", change: usages("client auth")},
		"ServerAuth":     {"agents are clients", usages("digital signature", "key encipherment", "client auth", "server auth"), ReasonWrongUsage},
		"CertSign":       {"nor authorities", usages("client auth", "cert sign"), ReasonWrongUsage},
		"AnyUsage":       {"any is more than client", usages("any"), ReasonWrongUsage},
		"NoUsage":        {"of no use", usages(), ReasonWrongUsage},
		"NoClientAuth":   {"of no use for an agent", usages("digital signature"), ReasonWrongUsage},
		"AnHour":         {reason: "shorter is fine", change: seconds(3600)},
		"AYear":          {reason: "as long as Kubernetes gives", change: seconds(MaxLifetime)},
		"TenYears":       {"longer than that", seconds(10 * MaxLifetime), ReasonTooLong},
		"Negative":       {"before it began", seconds(-1), ReasonTooLong},
		"Empty":          {"no request at all", text(func([]byte) []byte { return nil }), ReasonUnreadable},
		"Garbage":        {"not a request", text(func([]byte) []byte { return []byte("x") }), ReasonUnreadable},
		"Certificate":    {"a block of another type", text(func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), " REQUEST", "")) }), ReasonUnreadable},
		"TwoBlocks":      {"which one is signed differs between readers", text(func(b []byte) []byte { return slices.Concat(b, b) }), ReasonUnreadable},
		"Trailing":       {"something behind it", text(func(b []byte) []byte { return append(slices.Clone(b), "x"...) }), ReasonUnreadable},
		"Headers":        {"headers without meaning", text(withHeader), ReasonUnreadable},
		"Truncated":      {"half a request", text(truncated), ReasonUnreadable},
		"OthersKey":      {"signed with another key than its own", text(tampered), ReasonUnreadable},
		"TrailingInside": {"something behind the request, in the block", text(func(b []byte) []byte { return reblock(b, func(der []byte) []byte { return append(der, 0) }) }), ReasonUnreadable},
	}
}

func extraName(oid asn1.ObjectIdentifier, value string) func(*ask) {
	return func(a *ask) {
		a.request.Subject.ExtraNames = append(a.request.Subject.ExtraNames, pkix.AttributeTypeAndValue{Type: oid, Value: value})
	}
}

func extension(oid asn1.ObjectIdentifier, value []byte) func(*ask) {
	return func(a *ask) {
		a.request.ExtraExtensions = append(a.request.ExtraExtensions, pkix.Extension{Id: oid, Value: value})
	}
}

// otherName adds a Microsoft user principal name beside the valid DNS name.
func otherName(a *ask) {
	dns := "hello.addon.open-cluster-management.io"
	upn := []byte{0xa0, 0x12, 0x06, 0x0a, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x14, 0x02, 0x03, 0xa0, 0x04, 0x0c, 0x02, 'h', 'i'}
	names := append(append([]byte{0x82, byte(len(dns))}, dns...), upn...) //nolint:gosec // 38 bytes
	a.request.DNSNames = nil
	extension(oidSubjectAltName, append([]byte{0x30, byte(len(names))}, names...))(a) //nolint:gosec // below 128 bytes
}

func reblock(text []byte, change func([]byte) []byte) []byte {
	block, _ := pem.Decode(text)
	block.Bytes = change(slices.Clone(block.Bytes))
	return pem.EncodeToMemory(block)
}

func withHeader(text []byte) []byte {
	block, _ := pem.Decode(text)
	block.Headers = map[string]string{"X": "y"}
	return pem.EncodeToMemory(block)
}

// withHugeKey is the request with an RSA key of 64 kbit and no signature of it.
func withHugeKey(text []byte) []byte {
	return reblock(text, func(der []byte) []byte {
		good, _ := x509.ParseCertificateRequest(der)
		n := new(big.Int).Lsh(big.NewInt(1), 64<<10)
		key, _ := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: 65537})
		type unsigned struct {
			Version                  int
			Subject, Key, Attributes asn1.RawValue
		}
		huge, _ := asn1.Marshal(struct {
			Request   unsigned
			Algorithm pkix.AlgorithmIdentifier
			Signature asn1.BitString
		}{
			Request: unsigned{
				Subject: asn1.RawValue{FullBytes: good.RawSubject}, Key: asn1.RawValue{FullBytes: key},
				Attributes: asn1.RawValue{Class: asn1.ClassContextSpecific, IsCompound: true},
			},
			Algorithm: pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}, Parameters: asn1.NullRawValue},
			Signature: asn1.BitString{Bytes: make([]byte, 8<<10), BitLength: 64 << 10},
		})
		return huge
	})
}

func truncated(text []byte) []byte {
	return reblock(text, func(der []byte) []byte { return der[:len(der)/2] })
}

// tampered changes a letter of the name under the signature.
func tampered(text []byte) []byte {
	return reblock(text, func(der []byte) []byte {
		i := strings.Index(string(der), "hello-agent")
		der[i] = 'H'
		return der
	})
}

func TestRequestsNameExactlyTheComputedAgent(t *testing.T) {
	total := 0
	for group, cases := range map[string]map[string]hostile{"Requester": requesters(), "Name": names(), "Form": forms()} {
		for name, tc := range cases {
			total++
			t.Run(group+"/"+name, func(t *testing.T) {
				a := goodAsk()
				tc.change(a)
				got := Reason("")
				if refusal := Check(a.seal(t), a.facts); refusal != nil {
					got = refusal.Reason
				}
				if got != tc.want {
					t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
				}
			})
		}
	}
	if total < 40 {
		t.Errorf("only %d requests", total)
	}
}

// TestRequestsApprovedByHandAreForTheAgentOnly: a request that an admin approved is signed whatever the
// requester, but only with the agent's subject.
func TestRequestsApprovedByHandAreForTheAgentOnly(t *testing.T) {
	a := goodAsk().custom()
	a.csr.Spec.Username = "system:serviceaccount:open-cluster-management-hub:grpc-server-sa"
	if refusal := CheckContent(a.seal(t), a.facts); refusal != nil {
		t.Errorf("the agent's own name is refused: %v", refusal)
	}
	a.request.Subject.CommonName = "admin"
	if refusal := CheckContent(a.seal(t), a.facts); refusal == nil || refusal.Reason != ReasonWrongSubject {
		t.Errorf("another name is not refused: %v", refusal)
	}
}

// FuzzCSR: every approved request has the agent's subject.
func FuzzCSR(f *testing.F) {
	for _, cases := range []map[string]hostile{requesters(), names(), forms()} {
		for _, tc := range cases {
			a := goodAsk()
			tc.change(a)
			csr := a.seal(f)
			f.Add(csr.Spec.Request, csr.Spec.Username, csr.Labels["open-cluster-management.io/cluster-name"])
		}
	}
	f.Fuzz(func(t *testing.T, request []byte, user, cluster string) {
		a := goodAsk()
		a.csr.Spec.Username, a.csr.Spec.Request = user, request
		a.csr.Labels["open-cluster-management.io/cluster-name"] = cluster
		if Check(&a.csr, a.facts) != nil {
			return
		}
		if cluster != "c1" || !strings.HasPrefix(user, "system:open-cluster-management:c1:") {
			t.Fatalf("approved for %q, asked by %q", cluster, user)
		}
		parsed, refusal := parse(request)
		if refusal != nil || parsed.Subject.CommonName != perCluster+":agent:hello-agent" {
			t.Fatalf("approved %v", parsed.Subject)
		}
		for _, group := range parsed.Subject.Organization {
			if !slices.Contains([]string{perCluster, perAddOn, "system:authenticated"}, group) {
				t.Fatalf("approved group %q", group)
			}
		}
	})
}
