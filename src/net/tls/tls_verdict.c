/* tls_verdict.c - the text that explains why a certificate was not accepted.
 *
 * OpenSSL reports the reason while it verifies, when the certificate is available, and not
 * later.  So the text is built then, and kept with the session.  Names come from the peer: they
 * are made printable, and truncated.
 */
#include <string.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include "base/text.h"
#include "net/tls/tls_set.h"

#define NAME_BYTES  120
#define NAMES_SHOWN 4
#define TEXT_BYTES  640

/* Add printable bytes; others, and quotes, become '?'. */
static void
add_safe(struct weft__text *text, const unsigned char *bytes, size_t size)
{
	char one[2] = { 0, 0 };

	for (size_t i = 0; i < size && i < NAME_BYTES; i++) {
		bool plain = bytes[i] >= 0x20 && bytes[i] < 0x7f && bytes[i] != '"';

		one[0] = plain ? (char)bytes[i] : '?';
		weft__text_add(text, one);
	}
}

const char *
weft__tls_subject(const X509_NAME *name, char *buf, size_t size)
{
	struct weft__text text = weft__text_begin(buf, size);
	const X509_NAME_ENTRY *entry;
	const ASN1_STRING *value;
	int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);

	if (at < 0)
		at = X509_NAME_entry_count(name) - 1;
	entry = at < 0 ? NULL : X509_NAME_get_entry(name, at);
	value = entry ? X509_NAME_ENTRY_get_data(entry) : NULL;
	if (value)
		add_safe(&text, ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value));
	return buf;
}

static void
add_address(struct weft__text *text, const ASN1_OCTET_STRING *address)
{
	const unsigned char *b = ASN1_STRING_get0_data(address);
	int size = ASN1_STRING_length(address);

	weft__text_add(text, "the address ");
	for (int i = 0; i < size && i < 16; i++) {
		if (i > 0 && (size == 4 || i % 2 == 0))
			weft__text_add(text, size == 4 ? "." : ":");
		if (size == 4)
			weft__text_number(text, b[i]);
		else {
			const char hex[] = "0123456789abcdef";
			char two[3] = { hex[b[i] >> 4], hex[b[i] & 15], 0 };

			weft__text_add(text, two);
		}
	}
}

static void
add_quoted(struct weft__text *text, const ASN1_STRING *name)
{
	weft__text_add(text, "\"");
	add_safe(text, ASN1_STRING_get0_data(name), (size_t)ASN1_STRING_length(name));
	weft__text_add(text, "\"");
}

/* Add the hosts that a certificate is for: the first of its alternative names. */
static void
add_names(struct weft__text *text, const X509 *cert)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	int shown = 0;

	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

		if (name->type != GEN_DNS && name->type != GEN_IPADD)
			continue;
		if (shown++ == NAMES_SHOWN)
			break;
		weft__text_add(text, shown > 1 ? ", " : " ");
		if (name->type == GEN_IPADD)
			add_address(text, name->d.iPAddress);
		else
			add_quoted(text, name->d.dNSName);
	}
	weft__text_add(text, shown == 0            ? " no host at all"
	                     : shown > NAMES_SHOWN ? ", and others"
	                                           : "");
	GENERAL_NAMES_free(names);
}

/* What is wrong, to follow the name; NULL: use the text of OpenSSL. */
static const char *
words_for(int error, bool server)
{
	switch (error) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return "has expired";
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return "is not valid yet";
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
		return "is self-signed, and not trusted";
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
		return "is an authority that is not trusted";
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
		return "has an issuer that is neither trusted nor sent by the peer: ";
	case X509_V_ERR_INVALID_PURPOSE:
	case X509_V_ERR_CERT_REJECTED:
		return server ? "is not meant for clients" : "is not meant for servers";
	case X509_V_ERR_INVALID_CA:
	case X509_V_ERR_KEYUSAGE_NO_CERTSIGN:
		return "is not allowed to sign certificates";
	case X509_V_ERR_PATH_LENGTH_EXCEEDED:
		return "has a longer chain below it than it allows";
	case X509_V_ERR_CERT_CHAIN_TOO_LONG:
		return "is at the end of a chain that is too long";
	case X509_V_ERR_EE_KEY_TOO_SMALL:
	case X509_V_ERR_CA_KEY_TOO_SMALL:
		return "has a key that is too weak";
	case X509_V_ERR_CA_MD_TOO_WEAK:
		return "is signed by a digest that is too weak";
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		return "has a wrong signature";
	default:
		return NULL;
	}
}

static bool
is_wrong_host(int error)
{
	return error == X509_V_ERR_HOSTNAME_MISMATCH || error == X509_V_ERR_IP_ADDRESS_MISMATCH;
}

static void
write_verdict(struct weft__text *text, struct weft__session *s, X509_STORE_CTX *store)
{
	const X509 *cert = X509_STORE_CTX_get_current_cert(store);
	int error = X509_STORE_CTX_get_error(store);
	const char *words = words_for(error, s->role == WEFT_TLS_SERVER);
	char name[NAME_BYTES + 1] = "";

	if (cert && is_wrong_host(error)) {
		weft__text_add(text, "wrong host: the certificate is for");
		add_names(text, cert);
		return;
	}
	if (cert)
		(void)weft__tls_subject(X509_get_subject_name(cert), name, sizeof(name));
	weft__text_add(text, "the certificate of \"");
	weft__text_add(text, name);
	weft__text_add(text, words ? "\" " : "\": ");
	weft__text_add(text, words ? words : X509_verify_cert_error_string(error));
	if (cert && words && words[strlen(words) - 1] == ' ') {
		weft__text_add(text, "\"");
		weft__text_add(text,
		               weft__tls_subject(X509_get_issuer_name(cert), name, sizeof(name)));
		weft__text_add(text, "\"");
	}
}

int
weft__tls_on_verify(int ok, X509_STORE_CTX *store)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct weft__session *s = SSL_get_app_data(ssl);
	char buf[TEXT_BYTES];
	struct weft__text text = weft__text_begin(buf, sizeof(buf));

	if (ok)
		return 1;
	write_verdict(&text, s, store);
	weft__sys->release(s->verdict);
	s->verdict = weft__tls_text_copy(buf);
	return 0;
}
