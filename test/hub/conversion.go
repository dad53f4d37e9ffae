package hub

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// installNamespaceAnnotation keeps spec.installNamespace in v1beta1, which has no such
// field. The module's functions leave it to the webhook.
const installNamespaceAnnotation = "addon.open-cluster-management.io/v1alpha1-install-namespace"

// converter is the conversion webhook that OCM's cluster-manager runs: the API server asks
// it for add-on kinds in another version than the stored one. It converts with the API
// module's own functions.
type converter struct {
	scheme *runtime.Scheme
	server *http.Server
	url    string
	ca     []byte // PEM
}

// startConverter starts the webhook on loopback. close ends it.
func startConverter() (*converter, error) {
	c := &converter{scheme: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{addonv1alpha1.Install, addonv1beta1.Install, addonv1beta1.RegisterConversions} {
		if err := add(c.scheme); err != nil {
			return nil, fmt.Errorf("cannot register OCM's conversions: %w", err)
		}
	}
	certificate, err := c.certify()
	if err != nil {
		return nil, fmt.Errorf("cannot make a certificate for the conversion webhook: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot start the conversion webhook: %w", err)
	}
	c.url = "https://" + listener.Addr().String() + "/convert"
	c.server = &http.Server{Handler: http.HandlerFunc(c.serve), ReadHeaderTimeout: time.Minute}
	c.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	go func() { _ = c.server.ServeTLS(listener, "", "") }() // its only error is that close ended it
	return c, nil
}

func (c *converter) close() error { return c.server.Close() }

// certify makes a certificate for loopback that is its own authority.
func (c *converter) certify() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "conversion webhook"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	c.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// convertedKinds are the kinds whose versions differ. The schemas of an
// AddOnDeploymentConfig are the same in both, and OCM converts it without a webhook.
func convertedKinds() map[string]bool {
	return map[string]bool{"ClusterManagementAddOn": true, "ManagedClusterAddOn": true}
}

// join makes the definitions of kinds whose versions differ use the webhook.
func (c *converter) join(crds []*apiextensionsv1.CustomResourceDefinition) {
	for _, crd := range crds {
		if crd.Spec.Group != addonv1alpha1.GroupName || !convertedKinds()[crd.Spec.Names.Kind] {
			continue
		}
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &c.url, CABundle: c.ca},
				ConversionReviewVersions: []string{"v1"},
			},
		}
	}
}

// serve answers one ConversionReview.
func (c *converter) serve(w http.ResponseWriter, r *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(w, "not a ConversionReview", http.StatusBadRequest)
		return
	}
	review.Response = c.answer(review.Request)
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review) // the API server that closed the connection asks again
}

func (c *converter) answer(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for i := range request.Objects {
		converted, err := c.one(request.Objects[i].Raw, request.DesiredAPIVersion)
		if err != nil {
			response.ConvertedObjects = nil
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			return response
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: converted})
	}
	return response
}

// errVersion: no kind of that version is converted here.
var errVersion = errors.New("unknown version")

// one converts one object.
func (c *converter) one(raw []byte, version string) ([]byte, error) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, fmt.Errorf("cannot decode an object: %w", err)
	}
	from := meta.GroupVersionKind()
	group, err := schema.ParseGroupVersion(version)
	if err != nil || group.Group != from.Group || !convertedKinds()[from.Kind] {
		return nil, fmt.Errorf("cannot convert %s to %s: %w", from, version, errVersion)
	}
	in, err := c.scheme.New(from)
	if err != nil {
		return nil, fmt.Errorf("cannot convert %s: %w", from, err)
	}
	if err := json.Unmarshal(raw, in); err != nil {
		return nil, fmt.Errorf("cannot decode %s: %w", from, err)
	}
	to := group.WithKind(from.Kind)
	out, err := c.scheme.New(to)
	if err != nil {
		return nil, fmt.Errorf("cannot convert to %s: %w", to, err)
	}
	if err := c.scheme.Convert(in, out, nil); err != nil {
		return nil, fmt.Errorf("cannot convert %s to %s: %w", from, to, err)
	}
	complement(in, out)
	out.GetObjectKind().SetGroupVersionKind(to)
	return json.Marshal(out)
}

// complement converts what the module's functions leave to the webhook, as OCM's does.
func complement(in, out runtime.Object) {
	switch out := out.(type) {
	case *addonv1beta1.ManagedClusterAddOn:
		old, ok := in.(*addonv1alpha1.ManagedClusterAddOn)
		if ok && old.Spec.InstallNamespace != "" {
			metav1.SetMetaDataAnnotation(&out.ObjectMeta, installNamespaceAnnotation, old.Spec.InstallNamespace)
		}
	case *addonv1alpha1.ManagedClusterAddOn:
		if namespace, ok := out.Annotations[installNamespaceAnnotation]; ok {
			out.Spec.InstallNamespace = namespace
			delete(out.Annotations, installNamespaceAnnotation)
		}
		for i := range out.Status.ConfigReferences {
			if r := &out.Status.ConfigReferences[i]; r.DesiredConfig != nil {
				r.ConfigReferent = r.DesiredConfig.ConfigReferent
			}
		}
	}
}
