package registration

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	operatorv1 "open-cluster-management.io/api/operator/v1"
)

// MaxLifetime is the longest lifetime that a request may ask for, in seconds: a year, the
// default limit of Kubernetes' own signer.
const MaxLifetime = 365 * 24 * 60 * 60

// Bounds of an RSA key, in bits: shorter is weak, longer is slow to verify.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// Reason of a Refusal, in one word.
type Reason string

// Reasons why a request is left pending.
const (
	// ReasonWrongRequester: the requester is not the klusterlet of the cluster.
	ReasonWrongRequester Reason = "WrongRequester"
	// ReasonThroughGRPC: the request came through OCM's gRPC server. Only that server claims to know the requester.
	ReasonThroughGRPC Reason = "RequestedThroughGRPC"
	// ReasonClusterNotReady: the cluster is unknown, not accepted, or being deleted.
	ReasonClusterNotReady Reason = "ClusterNotReady"
	// ReasonAddOnNotReady: the add-on is not installed there, or being removed.
	ReasonAddOnNotReady Reason = "AddOnNotReady"
	// ReasonNotAsked: the content on the cluster does not request this signer.
	ReasonNotAsked Reason = "NotAskedFor"
	// ReasonUnreadable: the request is not a single, well-formed, self-signed PKCS#10.
	ReasonUnreadable Reason = "UnreadableRequest"
	// ReasonWrongSubject: the request names a subject other than the agent.
	ReasonWrongSubject Reason = "WrongSubject"
	// ReasonWrongExtension: the request has names or extensions beyond the agent's.
	ReasonWrongExtension Reason = "WrongExtension"
	// ReasonWeakKey: the key of the request is too weak, too large or of an unknown kind.
	ReasonWeakKey Reason = "WeakKey"
	// ReasonWrongUsage: the usages of the request are not those of client authentication.
	ReasonWrongUsage Reason = "WrongUsage"
	// ReasonTooLong: the request has a longer lifetime than MaxLifetime.
	ReasonTooLong Reason = "TooLong"
)

// Refusal says why a request is not approved, or not signed. The request is left pending, not
// denied: a denial would stop a klusterlet whose cluster is accepted a minute later.
type Refusal struct {
	Reason  Reason
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

func refused(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// State is the state of an object that a request is about.
type State string

// States of a cluster or of an add-on on it.
const (
	// Absent: there is no such object, or AddonFlow does not run it.
	Absent State = "absent"
	// Unaccepted: the hub has not accepted the cluster.
	Unaccepted State = "unaccepted"
	// Leaving: it is being deleted.
	Leaving State = "being deleted"
	// Present: it exists.
	Present State = "present"
)

// Facts is the hub's own knowledge about the cluster and add-on that a request is about.
// Nothing in it comes from an agent.
type Facts struct {
	Cluster State
	AddOn   State
	// Asked are the registration blocks of the template of the revision that is
	// applied on the cluster.
	Asked []addonv1alpha1.RegistrationSpec
}

// AddOnOf returns the add-on and the cluster that a request claims to be for. Every client can
// set labels, so Check compares them with the requester.
func AddOnOf(csr *certificatesv1.CertificateSigningRequest) (addOn, cluster string) {
	return csr.Labels[addonv1alpha1.AddonLabelKey], csr.Labels[clusterv1.ClusterNameLabelKey]
}

// Check returns why a request may not be approved; nil if it may. The requester must be the
// klusterlet of the cluster (which requests first certificates and renewals alike), the add-on
// must be installed there and ask for this signer, and the subject must be exactly the one
// computed here.
func Check(csr *certificatesv1.CertificateSigningRequest, facts Facts) *Refusal {
	if r := checkRequester(csr); r != nil {
		return r
	}
	return CheckContent(csr, facts)
}

// CheckContent is Check without the requester. A request that an admin approved by hand must
// pass it before it is signed.
func CheckContent(csr *certificatesv1.CertificateSigningRequest, facts Facts) *Refusal {
	addOn, cluster := AddOnOf(csr)
	if r := checkFacts(facts, addOn, cluster); r != nil {
		return r
	}
	subject, asked := subjectFor(facts.Asked, csr.Spec.SignerName, addOn, cluster)
	if !asked {
		return refused(ReasonNotAsked, "%s on %s does not register with signer %s", addOn, cluster, csr.Spec.SignerName)
	}
	if r := checkUsages(csr.Spec.Usages); r != nil {
		return r
	}
	if seconds := csr.Spec.ExpirationSeconds; seconds != nil && (*seconds > MaxLifetime || *seconds <= 0) {
		return refused(ReasonTooLong, "asks for %d seconds, at most %d are given", *seconds, MaxLifetime)
	}
	request, r := parse(csr.Spec.Request)
	if r != nil {
		return r
	}
	for _, check := range []func() *Refusal{
		func() *Refusal { return checkSubject(request, subject) },
		func() *Refusal { return checkReserved(request, addOn, cluster) },
		func() *Refusal { return checkExtensions(request, addOn) },
	} {
		if r := check(); r != nil {
			return r
		}
	}
	return nil
}

// checkRequester compares the requester, which the API server authenticated, with the cluster
// in the label.
func checkRequester(csr *certificatesv1.CertificateSigningRequest) *Refusal {
	_, labelled := AddOnOf(csr)
	cluster, _, ok := klusterlet(csr.Spec.Username)
	switch {
	case !ok && csr.Annotations[operatorv1.CSRUsernameAnnotation] != "":
		return refused(ReasonThroughGRPC,
			"was requested through OCM's gRPC server by %q; only an annotation names the requester, and it is not trusted; approve it by hand", csr.Spec.Username)
	case !ok:
		return refused(ReasonWrongRequester, "was asked by %q, which is not the agent of a managed cluster", csr.Spec.Username)
	case cluster != labelled:
		return refused(ReasonWrongRequester, "is labelled with cluster %q and was asked by the agent of %q", labelled, cluster)
	case !slices.Contains(csr.Spec.Groups, clusterPrefix+cluster):
		return refused(ReasonWrongRequester, "was asked by %q without the group of its cluster", csr.Spec.Username)
	}
	return nil
}

// checkFacts requires that cluster and add-on exist and are not being deleted.
func checkFacts(facts Facts, addOn, cluster string) *Refusal {
	switch {
	case addOn == "" || cluster == "":
		return refused(ReasonWrongRequester, "lacks the label %s or %s", addonv1alpha1.AddonLabelKey, clusterv1.ClusterNameLabelKey)
	case facts.Cluster != Present:
		return refused(ReasonClusterNotReady, "is for cluster %q, which is %s", cluster, facts.Cluster)
	case facts.AddOn != Present:
		return refused(ReasonAddOnNotReady, "is for add-on %q, which is %s on cluster %q", addOn, facts.AddOn, cluster)
	}
	return nil
}

// subjectFor computes the subject that the block of a signer asks for.
func subjectFor(asked []addonv1alpha1.RegistrationSpec, signer, addOn, cluster string) (addonv1alpha1.Subject, bool) {
	for _, spec := range asked {
		config, err := configuration(spec, addOn, cluster)
		if err == nil && config.SignerName == signer {
			return config.Subject, true
		}
	}
	return addonv1alpha1.Subject{}, false
}

// clientUsages are the usages of a client certificate.
func clientUsages() []certificatesv1.KeyUsage {
	return []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment}
}

// checkUsages requires client authentication, and only usages that it needs.
func checkUsages(usages []certificatesv1.KeyUsage) *Refusal {
	if !slices.Contains(usages, certificatesv1.UsageClientAuth) {
		return refused(ReasonWrongUsage, "does not ask for usage %q", certificatesv1.UsageClientAuth)
	}
	for _, u := range usages {
		if !slices.Contains(clientUsages(), u) {
			return refused(ReasonWrongUsage, "asks for usage %q; agents are clients", u)
		}
	}
	return nil
}

// parse reads the one PEM block of a request and verifies that the requester has the private
// key. It checks the key first, because an absurdly large one takes seconds to verify.
func parse(text []byte) (*x509.CertificateRequest, *Refusal) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(block.Headers) > 0 || len(rest) > 0 {
		return nil, refused(ReasonUnreadable, "is not one PEM block CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, refused(ReasonUnreadable, "cannot be read: %v", err)
	}
	if r := checkKey(request); r != nil {
		return nil, r
	}
	if err := request.CheckSignature(); err != nil {
		return nil, refused(ReasonUnreadable, "is not signed with its own key: %v", err)
	}
	return request, nil
}

// Attributes of a name that a request may carry.
var (
	oidCommonName         = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidOrganization       = asn1.ObjectIdentifier{2, 5, 4, 10}
	oidOrganizationalUnit = asn1.ObjectIdentifier{2, 5, 4, 11}
	oidSubjectAltName     = asn1.ObjectIdentifier{2, 5, 29, 17}
)

// checkSubject requires one common name, the groups as organizations, each once, the units, and
// no other attribute. system:authenticated may be among the groups: OCM before 1.3 put it into
// a status, and klusterlets ask for it until that status changes.
func checkSubject(request *x509.CertificateRequest, want addonv1alpha1.Subject) *Refusal {
	var names, groups, units []string
	for _, attribute := range request.Subject.Names {
		value, ok := attribute.Value.(string)
		switch {
		case ok && attribute.Type.Equal(oidCommonName):
			names = append(names, value)
		case ok && attribute.Type.Equal(oidOrganization):
			groups = append(groups, value)
		case ok && attribute.Type.Equal(oidOrganizationalUnit):
			units = append(units, value)
		default:
			return refused(ReasonWrongSubject, "names an attribute %s; only CN, O and OU are given", attribute.Type)
		}
	}
	switch {
	case !slices.Equal(names, []string{want.User}):
		return refused(ReasonWrongSubject, "has common name %q, not %q", names, want.User)
	case !sameGroups(groups, want.Groups):
		return refused(ReasonWrongSubject, "has organizations %q, not %q", groups, want.Groups)
	case !sameSet(units, want.OrganizationUnits):
		return refused(ReasonWrongSubject, "has organizational units %q, not %q", units, want.OrganizationUnits)
	}
	return nil
}

// serverName is the DNS name that klusterlets put into every request of an add-on. It has no
// use in a client certificate.
func serverName(addOn string) string { return addOn + ".addon.open-cluster-management.io" }

// checkExtensions allows only an extension with the add-on's own name.
func checkExtensions(request *x509.CertificateRequest, addOn string) *Refusal {
	for i, e := range request.Extensions {
		if !e.Id.Equal(oidSubjectAltName) || i > 0 {
			return refused(ReasonWrongExtension, "asks for extension %s", e.Id)
		}
	}
	if len(request.EmailAddresses)+len(request.IPAddresses)+len(request.URIs) > 0 {
		return refused(ReasonWrongExtension, "asks for alternative names that are no DNS name")
	}
	if len(request.Extensions) > 0 && !slices.Equal(request.DNSNames, []string{serverName(addOn)}) {
		return refused(ReasonWrongExtension, "asks for DNS names %q; only %q is given", request.DNSNames, serverName(addOn))
	}
	return checkAltNames(request)
}

// checkAltNames refuses a request with an alternative name that was not parsed, because the parser
// skips unknown kinds of names.
func checkAltNames(request *x509.CertificateRequest) *Refusal {
	for _, e := range request.Extensions {
		var names []asn1.RawValue
		rest, err := asn1.Unmarshal(e.Value, &names)
		if err != nil || len(rest) > 0 || len(names) != len(request.DNSNames) {
			return refused(ReasonWrongExtension, "asks for alternative names that are no DNS name")
		}
	}
	return nil
}

// checkKey refuses keys that are weak or absurdly large.
func checkKey(request *x509.CertificateRequest) *Refusal {
	switch key := request.PublicKey.(type) {
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return refused(ReasonWeakKey, "has an RSA key of %d bits; between %d and %d are accepted", bits, minRSABits, maxRSABits)
		}
	case *ecdsa.PublicKey:
		if !slices.Contains([]elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()}, key.Curve) {
			return refused(ReasonWeakKey, "has a key on curve %s", key.Params().Name)
		}
	case ed25519.PublicKey:
	default:
		return refused(ReasonWeakKey, "has a key of kind %s", request.PublicKeyAlgorithm)
	}
	return nil
}
