import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { connectFailure, isCertificateErrno } from '../../../../src/platform/net/connect-failure.js';

describe('a connection that did not come about', () => {
  const cases: readonly (readonly [errno: string, reason: string, text: string, hint: RegExp | undefined])[] =
    [
      [
        'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
        'unable to verify the first certificate; try running Node.js with --use-system-ca',
        'the certificate of the server is not trusted (UNABLE_TO_VERIFY_LEAF_SIGNATURE)',
        /^Set `ca` of the repository/,
      ],
      [
        'EPROTO',
        '40:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:tlsany_meth.c:78:\n',
        'what answers there does not speak TLS',
        /http:\/\//,
      ],
      ['ECONNREFUSED', 'connect ECONNREFUSED', 'no server listens there (ECONNREFUSED)', undefined],
      ['EAI_AGAIN', 'getaddrinfo', 'the name cannot be resolved now (EAI_AGAIN)', undefined],
      ['EPROTO', '40:error:0A000126:SSL\n', '40:error:0A000126:SSL', undefined],
    ];
  for (const [errno, reason, text, hint] of cases)
    it(`is described in one line: ${text}`, () => {
      const failure = connectFailure(errno, reason);
      assert.equal(failure.text, text);
      assert.equal(hint?.test(failure.hint ?? '') ?? failure.hint === undefined, true, failure.hint);
    });

  it('is a matter of the certificate where Node names one', () => {
    const named = ['SELF_SIGNED_CERT_IN_CHAIN', 'ERR_TLS_CERT_ALTNAME_INVALID', 'CERT_HAS_EXPIRED'];
    assert.deepEqual(named.filter(isCertificateErrno), named);
    assert.deepEqual(['ECONNRESET', 'EPROTO'].filter(isCertificateErrno), []);
  });
});
