// Finds secrets in the content of a file: private keys, Writ's own key files and tokens, and tokens with a fixed prefix that
// their services publish for scanners; also inside base64 and gzip (encoded-text.ts). A finding has its line and its kind,
// never a byte of the secret. Pure; memory and time are bounded by the chunk that is read, because each repeat is bounded,
// and none depends on the length of a line.

import { decodeBase64In, decodeBytes, decoderOf, inflate, keyBeginBytes } from './encoded-text.js';

export interface FoundSecret {
  readonly line: number;
  /** As `a GitHub token`. */
  readonly what: string;
  /** A key or token of Writ itself, which no option permits. */
  readonly isOwn: boolean;
}

export interface SecretScan {
  /** Scans the next chunk of the file, until a secret is found or the bound is reached. */
  readonly add: (chunk: Buffer) => void;
  readonly found: () => FoundSecret | undefined;
}

/** A longer file is usually a list, as of blocked names. A key is at the top of its file, or in a small file. */
export const maxScannedBytes = 4_194_304;
/** The length of the longest pattern, so that a secret across two chunks is complete in the next text. */
const overlapCharacters = 4096;
/** Bounds for one file: the decoded text that is searched, and the levels of base64 within base64. */
const maxDecodedCharacters = 67_108_864;
const maxLevels = 2;

const ownSecrets: Readonly<Record<string, string>> = {
  'a secret key file of Writ': '"writ-key"\\s{0,20}:',
  'a fleet key of a Writ host': '"secret"\\s{0,20}:\\s{0,20}"MC4CAQAwBQYDK2VwBCIE',
  'a token of a Writ fleet': 'writ_(?:host|people|opa)_[\\w-]{40}',
};

/**
 * Between the lines of a key: white space, the escapes and quotes of string literals, and the indentation of YAML or a
 * comment.
 */
const lineEnd = '[\\s\\\\nr"\'+,#>|*/]{0,60}';
/** Up to five members between the header and the body, as `Proc-Type: 4,ENCRYPTED`. */
const headerLines = `(?:[A-Z][\\w-]{1,30}: [^\\r\\n\\\\]{1,100}[\\r\\n\\\\]${lineEnd}){0,5}`;
/**
 * A header without this body is policy about keys, and not a key. A body that begins as RSA in DER (`MII`) or OpenSSH
 * (`b3Bl`) is longer than one line, so that an example with only its first line reveals no secret.
 */
const keyBody = `${lineEnd}${headerLines}(?:(?!MII|b3Bl)[A-Za-z0-9+/]{32}|[A-Za-z0-9+/]{77}|[A-Za-z0-9+/]{32,76}[\\s\\\\"']${lineEnd}[A-Za-z0-9+/]{32})`;
/**
 * A JSON Web Key with its members in either order, as JSON, YAML or TOML. `kty` without the private member is a public key.
 * A name without quotes must be a complete word, because `kid` ends with the name of the private member.
 */
function jwkPattern(types: string, privateMember: string, minCharacters: number): string {
  const member = (name: string, value: string): string =>
    `(?:["']${name}\\\\{0,3}["']|(?<![\\w-])${name})\\s{0,20}[:=]\\s{0,20}(?:\\\\{0,3}["'])?(?:${value})`;
  const type = member('kty', `(?:${types})(?!\\w)`);
  const value = member(privateMember, `[\\w-]{${minCharacters},1400}`);
  return `${type}[^{}]{0,1000}?${value}|${value}[^{}]{0,1000}?${type}`;
}

/** `wg` ignores the case of its member names. A case flag would apply to the patterns of the tokens too. */
function anyCase(name: string): string {
  return [...name].map((letter) => `[${letter.toUpperCase()}${letter}]`).join('');
}

const privateKeys: Readonly<Record<string, string>> = {
  'a private key': `-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----${keyBody}`,
  'an SSH2 private key': `---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----${keyBody}`,
  'a PuTTY private key': `PuTTY-User-Key-File-[123]: [\\w@.-]{3,60}${lineEnd}Encryption:`,
  'a minisign or signify secret key': `untrusted comment: (?:minisign|rsign|signify)[ \\w]{0,40} secret key${lineEnd}[A-Za-z0-9+/]{32}`,
  'a GnuPG private key': '\\((?:protected-)?private-key \\([a-z]{3}',
  'a DNSSEC private key': `Private-key-format: v1\\.[0-9]${lineEnd}Algorithm:`,
};

/**
 * These secrets are random, so that a character that is repeated eight times shows a placeholder. The prefixes are those
 * that each service documents for secret scanning. The lengths are at least the shortest that it issues.
 */
const randomSecrets: Readonly<Record<string, string>> = {
  'an age secret key': 'AGE-(?:SECRET-KEY|PLUGIN-[A-Z0-9]{1,40})-1[02-9AC-HJ-NP-Z]{20}',
  // The names that wg, systemd-networkd, NetworkManager, OpenWrt and YAML use.
  'a WireGuard key': `(?:${anyCase('private')}|${anyCase('preshared')})[-_]?${anyCase('key')}["']?[ \\t]{0,20}[=: \\t][ \\t]{0,20}["']?[A-Za-z0-9+/]{43}=`,
  'an AWS access key': '(?<!\\w)(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?!\\w)(?<!EXAMPLE)',
  'an AWS secret key':
    '(?:aws_secret_access_key|AWS_SECRET_ACCESS_KEY|[Ss]ecretAccessKey)["\']?[ \\t]{0,20}[=:][ \\t]{0,20}["\']?(?![A-Za-z0-9+/]{0,40}EXAMPLE)[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])',
  'an Azure storage key': 'AccountKey=[A-Za-z0-9+/]{86}==',
  'a GitHub token': '(?<!\\w)(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})',
  'a GitLab token': '(?<!\\w)gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt|ffct)-[\\w-]{20}',
  'a Slack token': '(?<!\\w)(?:xox[abeoprs]-[\\w-]{10}|xapp-[0-9]-[A-Z0-9]{6})',
  'a Slack webhook': 'hooks\\.slack\\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{40}',
  'a Stripe key': '(?<!\\w)(?:[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10}|whsec_[A-Za-z0-9+/]{32})',
  'a Google key': '(?<!\\w)(?:AIza[\\w-]{35}|GOCSPX-[\\w-]{28}|ya29\\.[\\w-]{20})',
  'an npm token': '(?<!\\w)npm_[A-Za-z0-9]{36}',
  'a PyPI token': '(?<!\\w)pypi-AgE[\\w-]{50}',
  'a RubyGems token': '(?<!\\w)rubygems_[0-9a-f]{48}',
  'a Docker token': '(?<!\\w)dckr_(?:pat|oat)_[\\w-]{27}',
  'a DigitalOcean token': '(?<!\\w)do[oprt]_v1_[0-9a-f]{64}',
  'a HashiCorp Vault token': '(?<!\\w)hv[sbr]\\.[\\w-]{24}',
  'a Grafana token': '(?<!\\w)(?:glsa_[A-Za-z0-9]{32}_|glc_[A-Za-z0-9+/]{32})',
  'a SendGrid key': '(?<!\\w)SG\\.[\\w-]{22}\\.[\\w-]{43}',
  'a Shopify token': '(?<!\\w)shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}',
  'a Hugging Face token': '(?<!\\w)hf_[A-Za-z0-9]{34}',
  'an Anthropic or OpenAI key':
    '(?<!\\w)sk-(?:(?:ant|proj|svcacct|admin)-[\\w-]{20}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})',
  'a Tailscale key': '(?<!\\w)tskey-[a-z]{2,10}-[\\w-]{16}',
  'a Databricks token': '(?<!\\w)dapi[0-9a-f]{32}(?!\\.?\\w)',
};
const placeholder = /(.)\1{7}/;

interface BinaryKey {
  /** The first bytes, hex. */
  readonly begin: RegExp;
  readonly kind: string;
  /** For a complete file; a decoded text has the name of its encoding. */
  readonly encoding: string;
}

/**
 * DER: a sequence with its version, then a sequence with an algorithm (PKCS 8), an integer (PKCS 1) or the octets of an elliptic
 * curve key (SEC 1); or a sequence with PBES2 (encrypted PKCS 8). A public key and a certificate begin with another sequence in a
 * sequence. OpenPGP: a secret key packet of version 4 (RFC 4880, sections 4.2 and 5.5.2) with its time and a known algorithm.
 * GnuPG: the canonical form of an expression, `(11:private-key(`.
 */
const binaryKeys: readonly BinaryKey[] = [
  {
    begin:
      /^30(?:[0-7].|81[89a-f].|82.{4})(?:0201(?:00(?:30|02)|01(?:30|04(?:20|30|42)))|30[0-7].06092a864886f70d01050d)/,
    ...{ kind: 'a private key', encoding: ' in DER' },
  },
  {
    begin: /^(?:94..|95....|c5(?:[0-9ab].|[cd]...|ff.{8}))04.{8}(?:0[123]|1[0-36])/,
    ...{ kind: 'an OpenPGP private key', encoding: '' },
  },
  {
    begin: /^28(?:31313a|32313a70726f7465637465642d)707269766174652d6b657928/,
    ...{ kind: 'a GnuPG private key', encoding: '' },
  },
];
/** The shortest private key is one of Ed25519. A shorter text may be the prefix by which a rule finds keys. */
const minKeyBytes = 48;
/** A length of two bytes, as for RSA. Its base64 begins with `MII`, and a single line of PEM reveals no secret (keyBody). */
const longDer = /^3082/;

function findBinaryKey(text: string): BinaryKey | undefined {
  if (text.length < minKeyBytes) return undefined;
  const hex = Buffer.from(text.slice(0, keyBeginBytes), 'latin1').toString('hex');
  if (longDer.test(hex) && text.length < keyBeginBytes) return undefined;
  return binaryKeys.find(({ begin }) => begin.test(hex));
}

/**
 * Searched only in a text with `kty`, because its unquoted names begin with frequent letters, which would slow down the
 * search for all others by a third.
 */
const privateJwk = new RegExp(`${jwkPattern('RSA|EC|OKP', 'd', 40)}|${jwkPattern('oct', 'k', 16)}`);

const own = patternsOf(ownSecrets);
const all = patternsOf({ ...ownSecrets, ...privateKeys, ...randomSecrets });

function patternsOf(kinds: Readonly<Record<string, string>>) {
  const sources = Object.values(kinds);
  return {
    kinds: Object.keys(kinds),
    either: new RegExp(sources.map((source) => `(${source})`).join('|'), 'g'),
  };
}

interface Match {
  readonly index: number;
  readonly kind: string;
  /** Empty for plain text. */
  readonly encoding: string;
}

type Patterns = typeof all;

/** @returns a binary private key at the beginning of a text, or the first secret in it */
function findPlain(text: string, patterns: Patterns): Omit<Match, 'encoding'> | undefined {
  const key = patterns === all ? findBinaryKey(text) : undefined;
  if (key !== undefined) return { index: 0, kind: key.kind };
  for (const match of text.matchAll(patterns.either)) {
    const kind = patterns.kinds[match.slice(1).findIndex((value) => value !== undefined)] ?? '';
    if (!Object.hasOwn(randomSecrets, kind) || !placeholder.test(match[0]))
      return { index: match.index, kind };
  }
  const jwk = patterns === all && text.includes('kty') ? privateJwk.exec(text) : null;
  return jwk === null ? undefined : { index: jwk.index, kind: 'a private JSON Web Key' };
}

/**
 * The decoded text of one file that may still be searched, because a short value in gzip and base64 can expand a thousand
 * times.
 */
interface Budget {
  leftCharacters: number;
}

interface Search {
  readonly patterns: Patterns;
  readonly budget: Budget;
  /** As for decodeBase64In. */
  readonly isCut: boolean;
  /** The remaining levels of base64 within base64. */
  readonly levels: number;
}

function findIn(text: string, { patterns, budget, isCut, levels }: Search): Match | undefined {
  const plain = findPlain(text, patterns);
  if (plain !== undefined) return { ...plain, encoding: '' };
  if (levels === 0) return undefined;
  for (const { text: inner, index, encoding } of decodeBase64In(text, isCut)) {
    budget.leftCharacters -= inner.length;
    if (budget.leftCharacters < 0) return undefined;
    const match = findIn(inner, { patterns, budget, isCut: false, levels: levels - 1 });
    if (match !== undefined) return { ...match, index, encoding: `${match.encoding} ${encoding}` };
  }
  return undefined;
}

/** @returns a secret in a gzip file, or a binary private key, found by the first bytes of the file */
function findInBinary(chunk: Buffer, search: Search): Match | undefined {
  const { patterns } = search;
  const key = patterns === all ? findBinaryKey(chunk.toString('latin1', 0, keyBeginBytes)) : undefined;
  if (key !== undefined) return { index: 0, kind: key.kind, encoding: key.encoding };
  const inflated = inflate(chunk);
  const match = inflated === undefined ? undefined : findIn(inflated, search);
  return match && { ...match, index: 0, encoding: `${match.encoding} in gzip` };
}

/**
 * Starts the search for a secret in one file. Reads no file: the caller adds its chunks in order. Throws nothing.
 * @param secrets `all`: every known kind; `own`: only secrets of Writ itself, for a file that the user includes
 * @returns the scan. `found` returns the first secret with its line (from 1), or undefined: none so far. Text is searched up to
 *   4 MiB, also in base64 and gzip; a chunk after the first secret or the bound is ignored
 */
export function scanForSecrets(secrets: 'all' | 'own'): SecretScan {
  const patterns = secrets === 'own' ? own : all;
  const search = {
    ...{ patterns, budget: { leftCharacters: maxDecodedCharacters }, isCut: false, levels: maxLevels },
  };
  let state = { scannedBytes: 0, line: 1, rest: '', decode: decodeBytes };
  let found: FoundSecret | undefined;
  let isOver = false;
  const end = ({ kind, encoding }: Match, line: number): void => {
    found = { line, what: `${kind}${encoding}`, isOwn: Object.hasOwn(ownSecrets, kind) };
    isOver = true;
  };
  const add = (chunk: Buffer): void => {
    if (isOver) return;
    if (state.scannedBytes === 0) {
      const binary = findInBinary(chunk, search);
      if (binary !== undefined) {
        end(binary, 1);
        return;
      }
      const decode = decoderOf(chunk);
      isOver = decode === undefined;
      if (decode === undefined) return;
      state = { ...state, decode };
    }
    const text = state.rest + state.decode(chunk);
    const match = findIn(text, { ...search, isCut: state.rest !== '' });
    if (match !== undefined) {
      end(match, state.line + countLines(text.slice(0, match.index)));
      return;
    }
    const rest = text.slice(-overlapCharacters);
    const line = state.line + countLines(text.slice(0, text.length - rest.length));
    state = { ...state, scannedBytes: state.scannedBytes + chunk.length, line, rest };
    isOver = state.scannedBytes >= maxScannedBytes;
  };
  return { add, found: () => found };
}

function countLines(text: string): number {
  let lines = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}
