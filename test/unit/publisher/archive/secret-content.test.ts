// Samples are put together here: a scanner that reads this repository must not find them.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { maxScannedBytes, scanForSecrets } from '../../../../src/publisher/archive/secret-content.js';

function found(content: string | Buffer, secrets: 'all' | 'own' = 'all', chunkBytes = 1_048_576) {
  const scan = scanForSecrets(secrets);
  const bytes = Buffer.from(content as string);
  for (let at = 0; at < bytes.length; at += chunkBytes) scan.add(bytes.subarray(at, at + chunkBytes));
  return scan.found();
}

const many = (characters: string, count: number): string => characters.repeat(count).slice(0, count);
const body = many('MIIEvQ/b+', 64);
const pem = (kind: string): string => `-----${'BEGIN'} ${kind}-----\n${body}\n${body}\n`;

const samples: Readonly<Record<string, readonly string[]>> = {
  'a private key': [
    ...['RSA ', 'EC ', 'DSA ', 'OPENSSH ', 'ENCRYPTED ', ''].map((kind) => pem(`${kind}PRIVATE KEY`)),
    pem('PGP PRIVATE KEY BLOCK'),
    `{"private_key": "-----${'BEGIN'} PRIVATE KEY-----\\n${body}\\n${body}"}`,
    `${'BEGIN'.padStart(10, '-')} OPENSSH PRIVATE KEY-----\nb3Bl${'A'.repeat(20)}${body}`,
    `-----${'BEGIN'} RSA PRIVATE KEY-----\r\nProc-Type: 4,ENCRYPTED\r\nDEK-Info: AES-128-CBC,0AF1\r\n\r\n${body}\r\n${body}`,
    `  -----${'BEGIN'} EC PRIVATE KEY-----\n    ${body}\n    ${body}`,
    `"-----${'BEGIN'} PRIVATE KEY-----\\n" +\n  "${body}" +\n  "${body}"`,
    `-----${'BEGIN'} PRIVATE KEY-----\nMC4CAQ${many('aB3+', 58)}\n`,
  ],
  'an SSH2 private key': [
    `---- ${'BEGIN'} SSH2 ENCRYPTED PRIVATE KEY ----\nComment: "of a test"\n${body}\n${body}`,
  ],
  'a PuTTY private key': ['PuTTY-User-Key-File-' + '3: ssh-ed25519\r\nEncryption: none'],
  'an age secret key': [`AGE-SECRET-KEY-1${many('QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L', 58)}`],
  'a minisign or signify secret key': [`untrusted comment: minisign ${'encrypted'} secret key\nRWRT${body}`],
  'a GnuPG private key': [
    'Key: (private-' + 'key (ecc (curve Ed25519)',
    'Key: (protected-private-' + 'key (rsa (n',
  ],
  'a DNSSEC private key': ['Private-key-' + 'format: v1.3\nAlgorithm: 13'],
  'a WireGuard key': [
    'PresharedKey=',
    'PrivateKey = ',
    'privatekey=',
    'PRIVATEKEY\t=',
    'private-key=',
    "option private_key '",
    'private_key: "',
  ].map((name) => `${name}${many('aB3+', 43)}=`),
  'a private JSON Web Key': [
    `{"kty":"OKP","crv":"Ed25519","x":"${many('aB3-', 43)}","d":"${many('cD4_', 43)}"}`,
    `{"d": "${many('cD4_', 342)}", "dp": "${many('e', 171)}", "kty": "RSA", "n": "${many('n', 342)}"}`,
    `{\\"kty\\":\\"EC\\",\\"d\\":\\"${many('cD4_', 43)}\\"}`,
    `{"kty":"oct","alg":"HS256","k":"${many('aB3', 43)}"}`,
    `{"k":"${many('aB3', 43)}","kty":"oct"}`,
    `kty: OKP, crv: Ed25519, d: ${many('cD4_', 43)}`,
    `kty: "RSA"\n  kid: ${many('k1', 43)}\n  n: ${many('n', 342)}\n  e: AQAB\n  d: '${many('cD4_', 342)}'`,
    `kty = "oct"\nk = "${many('aB3', 43)}"`,
    `d: ${many('cD4_', 43)}\nkty: EC`,
  ],
  'an AWS access key': [`AKIA${many('Q7R2', 16)}`, `ASIA${many('Q7R2', 16)}`],
  'an AWS secret key': [
    `aws_secret_access_key = ${many('aB3/', 40)}`,
    `AWS_SECRET_ACCESS_KEY=${many('aB3+', 40)}`,
    `"SecretAccessKey": "${many('aB3', 40)}"`,
  ],
  'an Azure storage key': [`AccountKey=${many('aB3/', 86)}==`],
  'a GitHub token': [
    `ghp_${many('aB3', 36)}`,
    `ghs_${many('aB3', 36)}`,
    `github_pat_${many('aB', 22)}_${many('cD', 59)}`,
  ],
  'a GitLab token': [`glpat-${many('aB3_', 20)}`, `glrt-${many('aB3-', 24)}`],
  'a Slack token': [`xoxb-${many('123', 12)}`, `xapp-1-${many('A1', 10)}`],
  'a Slack webhook': [`https://hooks.slack.com/services/${many('T0A/', 44)}`],
  'a Stripe key': [`sk_live_${many('aB3', 24)}`, `rk_test_${many('aB3', 24)}`],
  'a Google key': [`AIza${many('aB3-', 35)}`, `GOCSPX-${many('aB3_', 28)}`, `ya29.${many('aB3', 30)}`],
  'an npm token': [`npm_${many('aB3', 36)}`],
  'a PyPI token': [`pypi-AgEIcHlwaS5vcmc${many('aB3', 60)}`],
  'a RubyGems token': [`rubygems_${many('0af', 48)}`],
  'a Docker token': [`dckr_pat_${many('aB3', 27)}`],
  'a DigitalOcean token': [`dop_v1_${many('0af', 64)}`],
  'a HashiCorp Vault token': [`hvs.${many('aB3', 24)}`],
  'a Grafana token': [`glsa_${many('aB3', 32)}_0af1`],
  'a SendGrid key': [`SG.${many('aB3', 22)}.${many('aB3', 43)}`],
  'a Shopify token': [`shpat_${many('0af', 32)}`],
  'a Hugging Face token': [`hf_${many('aB', 34)}`, `hf_${many('5Qn', 34)}`],
  'an Anthropic or OpenAI key': [
    ...['ant', 'proj', 'svcacct', 'admin'].map((kind) => `sk-${kind}-${many('aB3', 24)}`),
    `sk-${many('aB3', 20)}T3Blbk${'FJ'}${many('cD4', 20)}`,
  ],
  'a Tailscale key': [`tskey-auth-${many('aB3', 20)}`],
  'a Databricks token': [`dapi${many('0af', 32)}`, `dapi${many('0af', 32)}-2.`],
};

const key = JSON.stringify({ 'writ-key': 1, scheme: 'ed25519' }, null, 2);
const ownSamples: Readonly<Record<string, readonly string[]>> = {
  'a secret key file of Writ': [key, key.replace(/\s/g, '')],
  'a fleet key of a Writ host': [`{"writ":1,"secret":"MC4CAQAwBQYDK2VwBCIE${many('aB3', 44)}"}`],
  'a token of a Writ fleet': ['host', 'people', 'opa'].map((kind) => `writ_${kind}_${many('aB3-', 43)}`),
};

describe('scanForSecrets', () => {
  for (const [what, texts] of Object.entries(samples)) {
    it(`finds ${what} with its line, unless the file is included`, () => {
      for (const text of texts) {
        const content = `# first\nvalue: "${text}"\n`;
        assert.deepEqual(found(content), { line: 2, what, isOwn: false }, text);
        assert.equal(found(content, 'own'), undefined);
      }
    });
  }

  for (const [what, texts] of Object.entries(ownSamples)) {
    it(`finds ${what} in an included file too`, () => {
      for (const text of texts) {
        assert.deepEqual(found(`\n\n${text}`, 'own')?.isOwn, true, text);
        assert.deepEqual(found(`\n\n${text}`)?.what, what);
      }
    });
  }

  it('finds a key of Writ after another secret in an included file', () => {
    assert.equal(found(`${pem('PRIVATE KEY')}${key}`, 'own')?.what, 'a secret key file of Writ');
  });

  const harmless = [
    '-----BEGIN CERTIFICATE-----\nMIIE',
    '-----BEGIN PUBLIC KEY-----\nMIIE',
    `deny { contains(input.text, "-----${'BEGIN'} RSA PRIVATE KEY-----") }\n# see ${many('aB3/', 60)}`,
    `content:"-----${'BEGIN'} OPENSSH PRIVATE KEY-----"; reference:url,example.net/${many('aB3/', 60)};`,
    `A key begins with \`-----${'BEGIN'} PRIVATE KEY-----\`, and its body is ${many('aB3/', 60)}.`,
    `-----${'BEGIN'} PRIVATE KEY-----\nMIIEvQIBADANBgkq...\n-----END PRIVATE KEY-----`,
    `starts_with("---- ${'BEGIN'} SSH2 ENCRYPTED PRIVATE KEY ----")`,
    `regex: ^PuTTY-User-Key-${'File'}-3: `,
    `match "Private-key-${'format'}: v1"`,
    `"untrusted comment: minisign encrypted ${'secret'} key" is refused`,
    `{"kty":"EC","crv":"P-256","x":"${many('aB3-', 43)}","y":"${many('cD4_', 43)}"}`,
    `{"d": "${many('cD4_', 43)}"}, {"kty": "EC"}`,
    `kty: EC\nkid: ${many('k1', 43)}\nx: ${many('aB3-', 43)}\ny: ${many('cD4_', 43)}`,
    `kty: oct\nkid: ${many('k1', 43)}\njwk: ${many('k1', 43)}`,
    'AKIAIOSFODNN7EXAMPLE',
    `x${'AKIA'}${many('Q7R2', 16)}`,
    'writ_host_... is the form of a token',
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI',
    'sk_buff, glpat-, ghp_, npm_config_registry',
    `-----${'BEGIN'} PRIVATE KEY-----\n${body}\n...\n-----END PRIVATE KEY-----`,
    `-----${'BEGIN'} OPENSSH PRIVATE KEY-----\nb3Bl${many('bnNzaC1r', 66)}\nQyNTUxOQAAACD... (snip)`,
    `content:"MIIEvQIBADANBgkqhkiG9w0BAQEFAASC";`,
    `content:"MC4CAQAwBQYDK2VwBCIE";`,
    `Bearer ghp_${'x'.repeat(36)}`,
    `aws_secret_access_key = ${'X'.repeat(40)}`,
    `PrivateKey = ${'A'.repeat(43)}=`,
    `AGE-SECRET-KEY-1${'X'.repeat(58)}`,
    `include: dapi${many('0af', 32)}.example.net`,
  ];
  for (const text of harmless) it(`takes ${text.slice(0, 30)}`, () => assert.equal(found(text), undefined));

  it('finds a secret after a placeholder of the same kind', () => {
    assert.deepEqual(found(`ghp_${'x'.repeat(36)}\nghp_${many('aB3', 36)}`)?.line, 2);
  });

  it('finds a secret on the border of two chunks, and counts lines over chunks', () => {
    const content = `${'line\n'.repeat(2000)}${`ghp_${many('aB3', 36)}`}\n`;
    for (const chunkBytes of [7, 512, 1000, 10_005, 10_020])
      assert.equal(found(content, 'all', chunkBytes)?.line, 2001, String(chunkBytes));
  });

  it('reads text of Windows, which is UTF-16 in either order', () => {
    const text = Buffer.from(`\ufeffok\n${`ghp_${many('aB3', 36)}`}\n`, 'utf16le');
    assert.equal(found(text)?.line, 2);
    assert.equal(found(Buffer.from(text).swap16())?.line, 2);
  });

  it('takes a program that has the first line of a key as a constant', () => {
    assert.equal(found(`\x7fELF\0\0${pem('PRIVATE KEY')}`), undefined);
  });

  it('finds a secret in an endless line within the limit of bytes, and none after it', () => {
    const before = maxScannedBytes - 200;
    assert.equal(found(`${'a '.repeat(before / 2)}${pem('PRIVATE KEY')}`)?.line, 1);
    assert.equal(found(`${'a '.repeat(maxScannedBytes / 2)}${pem('PRIVATE KEY')}`), undefined);
  });
});

describe('the first two bytes of a file', () => {
  it('mark UTF-16 only together, so that a secret after one of them is found', () => {
    const key = pem('PRIVATE KEY');
    for (const byte of [0xff, 0xfe])
      for (const place of [0, 1]) {
        const bytes = Buffer.from(`  ${key}`);
        bytes[place] = byte;
        assert.ok(found(bytes), `${byte} at ${place}`);
      }
  });
});
