// Targets for complete texts: TUF metadata, the configuration, an XML-RPC answer.
import assert from 'node:assert/strict';
import type { ParsedConfig } from '../../../src/core/config/parse-config.js';
import { parseEnvelope, topLevelRoles } from '../../../src/core/tuf/tuf-metadata.js';
import { parseXmlRpcAnswer, type XmlRpcValue } from '../../../src/workers/protocols/xml-rpc.js';
import type { Seeded } from '../../kit/assert/seeded.js';
import { parse as parseConfigText } from '../../unit/core/config/parsed-text.js';
import { changeJson } from '../engine/change-json.js';
import { acceptedOr, type Target } from '../engine/target.js';
import { hostConfig, metadataFiles, xmlRpcAnswers } from './text-seeds.js';

/** @param parse parser under test; a test passes a broken one */
export function metadataTarget(parse: typeof parseEnvelope = parseEnvelope): Target {
  const codes = ['METADATA_MALFORMED', 'SIGNATURE_DUPLICATE'];
  return {
    name: 'tuf-metadata',
    seeds: metadataFiles,
    reshape: changeJson,
    tokens: [
      ...[
        '"signed":',
        '"signatures":[',
        '"_type":"root"',
        '"_type":"targets"',
        '"version":',
        '"expires":"',
        '"keyid":"',
      ],
      ...[
        '"delegations":',
        '"paths":["',
        '"path_hash_prefixes":',
        '"threshold":',
        '"hashes":{',
        '"sha512":"',
        '"length":',
      ],
      ...[
        '"custom":{',
        '{}',
        '[]',
        'null',
        'true',
        '\\u0000',
        '\\ud800',
        '"__proto__":',
        '2999-01-01T00:00:00Z',
        ',',
        '*',
      ],
    ],
    check: (input) => {
      for (const role of topLevelRoles) {
        const read = acceptedOr(codes, () => parse(input, role));
        if (!('value' in read)) continue;
        const { signed, signatures, expiresAtMs } = read.value;
        assert.equal(signed._type, role);
        assert.ok(Number.isSafeInteger(signed.version) && signed.version > 0, `version ${signed.version}`);
        assert.ok(Number.isFinite(expiresAtMs));
        assert.equal(new Set(signatures.map(({ keyid }) => keyid)).size, signatures.length);
        // The parsed value in another serialization has the same bytes to sign.
        const again = parse(Buffer.from(JSON.stringify({ signatures, signed })), role);
        assert.deepEqual(Buffer.from(again.signedBytes), Buffer.from(read.value.signedBytes));
      }
    },
  };
}

/** @param parse parser under test; a test passes a broken one */
export function configTarget(parse: (text: string) => ParsedConfig = parseConfigText): Target {
  return {
    name: 'configuration',
    seeds: hostConfig,
    reshape: changeJson,
    tokens: [
      ...[
        'repository: ',
        'bundles:\n',
        '  - name: ',
        'workers:\n',
        'uses: [',
        'when: ',
        'checks:\n',
        'run: [',
        'reset: ',
      ],
      ...[
        'signal: HUP',
        'pidFile: ',
        'poll: ',
        '5m',
        '{bundle}',
        '&a ',
        '*a',
        '<<: ',
        '!!binary ',
        '? ',
        '---\n',
        '\t',
        '|\n',
      ],
      ...[
        '__proto__: ',
        "'",
        '"',
        '{',
        '}',
        '[',
        ']',
        '#',
        ': ',
        '\n',
        '\n  ',
        '0x1f',
        'null',
        '~',
        '\u00a0',
      ],
    ],
    check: (input) => {
      const parsed = parse(input.toString('utf8'));
      if (parsed.ok) return;
      assert.ok(parsed.mistakes.length > 0);
      for (const { line, column, pointer, text } of parsed.mistakes) {
        assert.ok(line >= 1 && column >= 1 && text !== '');
        assert.ok(pointer === '' || pointer.startsWith('/'));
      }
    },
  };
}

/** @param parse parser under test; a test passes a broken one */
export function xmlRpcTarget(parse: typeof parseXmlRpcAnswer = parseXmlRpcAnswer): Target {
  return {
    name: 'xml-rpc',
    make: (random) => Buffer.from(answerWith(madeValue(random, 0))),
    seeds: xmlRpcAnswers,
    tokens: [
      ...[
        'array',
        'data',
        'value',
        'struct',
        'member',
        'name',
        'string',
        'int',
        'i4',
        'boolean',
        'fault',
      ].flatMap((tag) => [`<${tag}>`, `</${tag}>`]),
      ...[
        '&lt;',
        '&amp;',
        '&#60;',
        '&#x3c;',
        '&',
        '<!--',
        '<![CDATA[',
        ']]>',
        '<?x?>',
        '<int/>',
        '-2147483648',
      ],
    ],
    check: (input) => {
      const answer = parse(input.toString('utf8'));
      if (answer.kind === 'malformed') assert.ok(answer.at >= 0 && answer.at <= input.length);
      if (answer.kind !== 'value') return;
      // A parsed value that is written again must be parsed to the same value.
      assert.deepEqual(parse(answerWith(answer.value)), answer);
    },
  };
}

function answerWith(value: XmlRpcValue): string {
  return `<methodResponse><params><param>${written(value)}</param></params></methodResponse>`;
}

function madeValue(random: Seeded, depth: number): XmlRpcValue {
  const some = (): XmlRpcValue[] => Array.from({ length: random.int(3) }, () => madeValue(random, depth + 1));
  const kind = random.int(depth > 4 ? 3 : 5);
  if (kind === 0) return random.pick(['', 'a', '&<>', '&amp;', '\u0000', ' ', 'ü']);
  if (kind === 1) return random.pick([0, -1, 2 ** 31, -(2 ** 31)]);
  if (kind === 2) return random.once(2);
  return kind === 3 ? some() : new Map(some().map((one, at) => [`${at}`, one]));
}

function written(value: XmlRpcValue): string {
  return `<value>${typed(value)}</value>`;
}

function typed(value: XmlRpcValue): string {
  if (typeof value === 'string') return `<string>${escaped(value)}</string>`;
  if (typeof value === 'number') return `<int>${Object.is(value, -0) ? '-0' : value}</int>`;
  if (typeof value === 'boolean') return `<boolean>${value ? 1 : 0}</boolean>`;
  if (!(value instanceof Map)) {
    return `<array><data>${(value as readonly XmlRpcValue[]).map(written).join('')}</data></array>`;
  }
  const members = [...(value as ReadonlyMap<string, XmlRpcValue>)].map(
    ([name, one]) => `<member><name>${escaped(name)}</name>${written(one)}</member>`,
  );
  return `<struct>${members.join('')}</struct>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
