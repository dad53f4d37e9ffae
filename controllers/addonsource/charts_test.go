package addonsource_test

import (
	"os"
	"path/filepath"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/test/registry"
)

// chartOf is a version of the chart hello, with one ConfigMap.
func chartOf(version string) map[string]string {
	return map[string]string{
		"Chart.yaml":              "apiVersion: v2\nname: hello\nversion: " + version + "\n",
		"templates/settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  version: {{ .Chart.Version | quote }}\n",
	}
}

// packagedWith is an add-on with a package in place of the template; helm says where the chart is.
func packagedWith(helm string) map[string]string {
	files := addOnFiles()
	delete(files, "addons/addontemplate.yaml")
	files["addons/clustermanagementaddon.yaml"] = strings.Replace(addOnYAML, `  - group: addon.open-cluster-management.io
    resource: addontemplates
    defaultConfig:
      name: ADDON
`, "", 1)
	files["addons/addonpackage.yaml"] = "apiVersion: addonflow.io/v1alpha1\nkind: AddOnPackage\nmetadata:\n  name: ADDON\nspec:\n  addOn: ADDON\n  helm:\n    " + helm + "\n"
	return files
}

var _ = Describe("A chart in a registry", func() {
	const at = "addons/addonpackage.yaml:8: AddOnPackage/ADDON: spec.helm.oci: "

	It("is rendered by its digest, from a registry that the source lists, and kept in the AddOnRevision", func() {
		server := registry.Start(GinkgoTB(), registry.Options{User: "ana", Password: "canary-55d0"})
		digest := server.PushChart(GinkgoTB(), "charts", chartOf("1.0.0"))
		reference := server.Host + "/charts/hello:1.0.0@" + digest
		w := newWorld()
		sha := w.commit("add hello", packagedWith("oci: "+reference))
		w.pass()
		Expect(w.whyNotReady()).To(Equal("False BuildFailed: " + w.named(at) + "charts are not read from " + server.Host + "; list the registry in spec.registries of the AddOnSource"))
		w.delivered(sha, "failure")

		w.change(func(s *v1alpha1.AddOnSource) {
			s.Spec.Registries = []v1alpha1.RegistrySpec{{Host: server.Host, Insecure: true, SecretRef: &fluxmeta.LocalObjectReference{Name: "pull"}}}
		})
		w.pass()
		Expect(w.whyNotReady()).To(Equal("False InvalidCredentials: secretRef of registry " + server.Host + ": Secret " + w.namespace + "/pull does not exist"))

		secret := w.newSecret("pull", map[string][]byte{".dockerconfigjson": registry.DockerConfig(server.Host, "ana", "canary-55d1")})
		w.look()
		Expect(w.whyNotReady()).To(Equal("False InvalidCredentials: " + w.named(at) + "cannot read " + strings.Replace(reference, ":1.0.0", "", 1) + ": authentication failed: " + server.Host + " answered 401"))
		Expect(w.delivered(sha, "pending").Description).To(Equal("cannot be fetched yet: InvalidCredentials, see AddOnSource fleet"), "the verdict was about another spec")

		secret.Data[".dockerconfigjson"] = server.DockerConfig()
		Expect(admin.Update(GinkgoT().Context(), secret)).To(Succeed())
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: "))
		content, err := render.Decode(w.revisions()[0].Spec.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(content.Package.Files).To(HaveLen(2))
		Expect(content.Package.Files[1].Text).To(Equal(chartOf("1.0.0")["templates/settings.yaml"]))

		vendored := packagedWith("path: chart")
		for name, text := range chartOf("1.0.0") {
			vendored["addons/chart/"+name] = text
		}
		w.commit("the same chart, in the repository", vendored)
		w.look()
		Expect(w.revisions()).To(HaveLen(1), "equal content is one revision, wherever it came from")

		w.commit("the chart of the registry again, with a mistake", packagedWith("oci: "+reference+"0"))
		w.look()
		Expect(w.whyNotReady()).To(ContainSubstring("is not a chart by digest, host/repository@sha256:<64 hexadecimal digits>; addonflow vendor --digest writes the digest of a version"))
		Expect(w.logged).NotTo(ContainElement(ContainSubstring("canary")))
	})

	It("is named by what is wrong with it, and waited for if it is not there", func() {
		server := registry.Start(GinkgoTB(), registry.Options{})
		bad := chartOf("1.0.0")
		bad["templates/settings.yaml"] = "data: {{ shout 1 }}\n"
		digest := server.PushChart(GinkgoTB(), "charts", bad)
		w := newWorld(func(s *v1alpha1.AddOnSource) {
			s.Spec.Registries = []v1alpha1.RegistrySpec{{Host: server.Host, Insecure: true}}
		})
		w.commit("add hello", packagedWith("oci: "+server.Host+"/charts/hello@"+digest))
		w.pass()
		Expect(w.whyNotReady()).To(Equal("False ValidationFailed: " + w.named(at) + `templates/settings.yaml:1: function "shout" not defined`))

		absent := server.Host + "/charts/hello@sha256:" + strings.Repeat("a", 64)
		w.commit("a chart that is not pushed yet", packagedWith("oci: "+absent))
		w.look()
		Expect(w.whyNotReady()).To(Equal("False FetchFailed: " + w.named(at) + "cannot read " + absent + ": not found: the registry answered 404"))

		signer := registry.NewSigner(GinkgoTB())
		w.newSecret("cosign", map[string][]byte{"cosign.pub": signer.Public(GinkgoTB())})
		w.change(func(s *v1alpha1.AddOnSource) {
			s.Spec.Registries[0].Verify = &v1alpha1.OCIVerifySpec{SecretRef: fluxmeta.LocalObjectReference{Name: "cosign"}}
		})
		digest = server.PushChart(GinkgoTB(), "charts", chartOf("1.0.1"))
		w.commit("a chart that is not signed yet", packagedWith("oci: "+server.Host+"/charts/hello@"+digest))
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("False VerificationFailed: " + w.named(at) + server.Host + "/charts/hello@" + digest + ": signature refused: it is not signed: "))
		Expect(w.revisions()).To(BeEmpty())
		server.Sign(GinkgoTB(), "charts/hello", digest, signer.Signature(GinkgoTB(), server.Host, digest))
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: "))
	})
})

var _ = Describe("An artifact in a registry", func() {
	// overOCI is a world whose source follows an artifact in place of the repository.
	overOCI := func(host string, change ...func(*v1alpha1.OCISpec)) *world {
		return newWorld(func(s *v1alpha1.AddOnSource) {
			s.Spec.URL, s.Spec.Reference, s.Spec.CommitStatus = "", nil, nil
			s.Spec.OCI = &v1alpha1.OCISpec{URL: "oci://" + host + "/team/fleet", Insecure: true}
			for _, c := range change {
				c(s.Spec.OCI)
			}
		})
	}
	// made is the commit that the artifacts were made from, as it ends a revision.
	made := "+sha1:" + strings.Repeat("a", 40)
	// pushedOf pushes files as flux push artifact does, with --revision.
	pushedOf := func(w *world, server *registry.Server, tag, revision string, files map[string]string) string {
		GinkgoHelper()
		dir := GinkgoT().TempDir()
		for name, text := range files {
			file := filepath.Join(dir, w.named(name))
			Expect(os.MkdirAll(filepath.Dir(file), 0o700)).To(Succeed())
			Expect(os.WriteFile(file, []byte(w.named(text)), 0o600)).To(Succeed())
		}
		digest, err := server.PushTree(GinkgoT().Context(), "team/fleet", tag, dir, revision)
		Expect(err).NotTo(HaveOccurred())
		return digest
	}
	pushed := func(w *world, server *registry.Server, tag string, files map[string]string) string {
		GinkgoHelper()
		return pushedOf(w, server, tag, "main@sha1:"+strings.Repeat("a", 40), files)
	}

	It("is followed by its tag as a branch is, and a mistake in it is refused at its line", func() {
		server := registry.Start(GinkgoTB(), registry.Options{})
		w := overOCI(server.Host)
		w.pass()
		Expect(w.whyNotReady()).To(Equal("False RefNotFound: reference not found: cannot find " + server.Host + "/team/fleet:latest: not found: the registry answered 404"))

		first := pushed(w, server, "latest", addOnFiles())
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: Applied revision latest@" + first))
		Expect(w.source().Status.LastAppliedRevision).To(Equal("latest@" + first + made))
		Expect(w.source().Status.AddOns[0].Commit).To(Equal("latest@" + first + made))
		applied := w.revisions()[0].Name

		bad := pushed(w, server, "latest", addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": strings.Replace(configYAML, "customizedVariables", "customisedVariables", 1)}))
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("False ValidationFailed: addons/addondeploymentconfig.yaml:7: AddOnDeploymentConfig/" + w.addOn + ": spec.customisedVariables: "))
		Expect(w.source().Status.LastAttemptedRevision).To(Equal("latest@" + bad + made))
		Expect(w.source().Status.LastAppliedRevision).To(Equal("latest@" + first + made))

		pushed(w, server, "latest", addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": configSaying("again")}))
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: "))
		Expect(w.revisions()).To(HaveLen(2))

		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.OCI.Reference = &v1alpha1.OCIReference{Digest: first} })
		w.passes()
		Expect(w.source().Status.LastAppliedRevision).To(Equal(first + made))
		Expect(w.source().Status.AddOns[0].Revision).To(Equal(applied))
	})

	It("is read once cosign signed it, with the tag of the highest version in a range", func() {
		server := registry.Start(GinkgoTB(), registry.Options{})
		signer := registry.NewSigner(GinkgoTB())
		w := overOCI(server.Host, func(o *v1alpha1.OCISpec) {
			o.Reference = &v1alpha1.OCIReference{SemVer: "1.x"}
			o.Verify = &v1alpha1.OCIVerifySpec{SecretRef: fluxmeta.LocalObjectReference{Name: "cosign"}}
		})
		pushed(w, server, "1.2.0", addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": "older"}))
		digest := pushed(w, server, "1.10.0", addOnFiles())
		pushed(w, server, "2.0.0", map[string]string{"addons/broken.yaml": "x: ["})
		w.pass()
		Expect(w.whyNotReady()).To(Equal("False InvalidCredentials: verify.secretRef of " + w.source().Spec.OCI.URL + ": Secret " + w.namespace + "/cosign does not exist"))
		w.newSecret("cosign", map[string][]byte{"cosign.pub": signer.Public(GinkgoTB())})
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("False VerificationFailed: " + server.Host + "/team/fleet@" + digest + ": signature refused: it is not signed: "))
		Expect(w.revisions()).To(BeEmpty())

		server.Sign(GinkgoTB(), "team/fleet", digest, signer.Signature(GinkgoTB(), server.Host, digest))
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: Applied revision 1.10.0@" + digest))
	})

	It("has its statuses on the commit that it names, and says so if it names none", func() {
		server := registry.Start(GinkgoTB(), registry.Options{})
		w := overOCI(server.Host)
		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.CommitStatus = w.newSource("fleet").Spec.CommitStatus })
		good, bad := strings.Repeat("1", 40), strings.Repeat("2", 40)
		pushedOf(w, server, "latest", "main@sha1:"+good, addOnFiles())
		w.look()
		w.delivered(good, "pending")
		w.green(good)

		pushedOf(w, server, "latest", "main@sha1:"+bad, map[string]string{"addons/broken.yaml": "x: ["})
		w.look()
		Expect(w.delivered(bad, "failure").Description).To(ContainSubstring("addons/broken.yaml:1"))

		By("a fix that is pushed as the same commit")
		pushedOf(w, server, "latest", "main/"+bad, addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": configSaying("again")}))
		w.look()
		w.delivered(bad, "pending")
		w.green(bad)

		By("names that are no commit of Git")
		before := len(w.forge.Log())
		for _, named := range []string{"nightly", "main@sha1:" + good[1:], "main@sha256:" + strings.Repeat("3", 64), "../" + strings.ToUpper(strings.Repeat("a", 40))} {
			pushedOf(w, server, "latest", named, addOnFilesWith(map[string]string{"addons/addondeploymentconfig.yaml": configSaying("as " + named[:7])}))
			w.look()
			Expect(w.whyNotReady()).To(HavePrefix("True ReconciliationSucceeded: "))
			Expect(conditions.GetMessage(w.source(), v1alpha1.CommitStatusReportedCondition)).To(HavePrefix("the artifact names no commit that could have a status"))
		}
		Expect(w.forge.Log()).To(HaveLen(before))

		By("a commit again")
		pushedOf(w, server, "latest", "main@sha1:"+strings.Repeat("4", 40), addOnFiles())
		w.look()
		w.delivered(strings.Repeat("4", 40), "pending")

		source := w.source()
		source.Spec.CommitStatus.RevertPullRequest = true
		Expect(admin.Update(GinkgoT().Context(), source)).To(MatchError(ContainSubstring("commitStatus.revertPullRequest needs a Git repository")))
	})

	It("names no commit before its signature was verified", func() {
		server := registry.Start(GinkgoTB(), registry.Options{})
		signer := registry.NewSigner(GinkgoTB())
		w := overOCI(server.Host, func(o *v1alpha1.OCISpec) {
			o.Verify = &v1alpha1.OCIVerifySpec{SecretRef: fluxmeta.LocalObjectReference{Name: "cosign"}}
		})
		w.newSecret("cosign", map[string][]byte{"cosign.pub": signer.Public(GinkgoTB())})
		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.CommitStatus = w.newSource("fleet").Spec.CommitStatus })
		victim := strings.Repeat("1", 40)
		digest := pushedOf(w, server, "latest", "main@sha1:"+victim, addOnFiles())
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("False VerificationFailed: "))
		Expect(w.forge.Log()).To(BeEmpty())
		Expect(w.source().Status.CommitStatuses).To(BeEmpty())
		server.Sign(GinkgoTB(), "team/fleet", digest, signer.Signature(GinkgoTB(), server.Host, digest))
		w.look()
		w.delivered(victim, "pending")
	})

	It("gets no status on its commit after a signature is demanded of it, until that was verified", func() {
		server := registry.Start(GinkgoTB(), registry.Options{})
		signer := registry.NewSigner(GinkgoTB())
		w := overOCI(server.Host)
		w.newSecret("cosign", map[string][]byte{"cosign.pub": signer.Public(GinkgoTB())})
		w.change(func(s *v1alpha1.AddOnSource) { s.Spec.CommitStatus = w.newSource("fleet").Spec.CommitStatus })
		victim := strings.Repeat("1", 40)
		pushedOf(w, server, "latest", "main@sha1:"+victim, map[string]string{"addons/broken.yaml": "x: ["})
		w.look()
		w.delivered(victim, "failure")

		w.change(func(s *v1alpha1.AddOnSource) {
			s.Spec.OCI.Verify = &v1alpha1.OCIVerifySpec{SecretRef: fluxmeta.LocalObjectReference{Name: "cosign"}}
		})
		w.look()
		Expect(w.whyNotReady()).To(HavePrefix("False VerificationFailed: "))
		Expect(commitstatus.Last(w.source().Status.CommitStatuses[0]).State).To(Equal("failure"), "a pending status of a commit that the signature does not prove")
	})

	It("has no fields of a Git repository", func() {
		w := overOCI("registry.example.com")
		source := w.source()
		source.Spec.URL = "https://git.example.com/team/fleet"
		Expect(admin.Update(GinkgoT().Context(), source)).To(MatchError(ContainSubstring("exactly one of url and oci is given")))
		source = w.source()
		source.Spec.Reference = &v1alpha1.GitReference{Branch: "main"}
		Expect(admin.Update(GinkgoT().Context(), source)).To(MatchError(ContainSubstring("with oci, set oci.ref, oci.secretRef or oci.verify")))
		source = w.source()
		source.Spec.OCI.Insecure = false
		source.Spec.OCI.URL = "oci://registry.example.com"
		Expect(admin.Update(GinkgoT().Context(), source)).To(Succeed())
		w.pass()
		Expect(w.whyNotReady()).To(Equal(`False InvalidURL: spec.oci.url: "oci://registry.example.com" is not a repository of a registry, host/repository`))
	})
})
