// Targets for sockets of a host, in pieces: requests of commands, messages of native workers, answers of kresd.
import assert from 'node:assert/strict';
import { parseControlRequest } from '../../../src/core/protocol/control-protocol.js';
import {
  isWorkerName,
  maxReasonBytes,
  parseAgentMessage,
  parseWorkerMessage,
} from '../../../src/core/protocol/native-protocol.js';
import { parseReadRequest } from '../../../src/core/protocol/read-protocol.js';
import {
  createLineReader,
  parseHello,
  type SocketMessage,
} from '../../../src/core/protocol/socket-protocol.js';
import {
  createKresdReader,
  type KresdAnswer,
  maxKresdAnswerBytes,
} from '../../../src/workers/protocols/kresd-protocol.js';
import { changeJson } from '../engine/change-json.js';
import { acceptedOr, inPieces, type Target } from '../engine/target.js';

const refused = ['MESSAGE_MALFORMED'];
const sizes: readonly (readonly number[])[] = [[1], [2, 3], [5, 1, 100]];
const jsonTokens = [
  '{"',
  '":',
  ',"',
  '"}',
  '\n',
  '}\n{',
  'null',
  'true',
  '[]',
  '{}',
  '1',
  '-0',
  '"',
  '\\u0000',
  '\\ud800',
];

const lines = (messages: readonly object[]): Buffer =>
  Buffer.from(messages.map((one) => `${JSON.stringify(one)}\n`).join(''));

/** Asserts equal messages, or an equal rejection, for each split into pieces. */
function readLines(input: Buffer): readonly SocketMessage[] {
  const read = (pieces: Iterable<Buffer>): SocketMessage[] => {
    const reader = createLineReader();
    return [...pieces].flatMap((piece) => reader.push(piece));
  };
  const whole = acceptedOr(refused, () => read([input]));
  for (const one of sizes)
    assert.deepEqual(
      acceptedOr(refused, () => read(inPieces(input, one))),
      whole,
    );
  return 'value' in whole ? whole.value : [];
}

/** @param parse parser under test; a test passes a broken one */
export function controlTarget(parse: typeof parseControlRequest = parseControlRequest): Target {
  return {
    name: 'control-socket',
    reshape: changeJson,
    seeds: [
      lines([
        { writ: 1, version: '0.1.0' },
        { type: 'pull', force: true, by: 'root' },
      ]),
      lines([
        { type: 'pause', by: 'a', reason: 'b', untilMs: 4 },
        { type: 'history', limit: 20, cycle: 'c1' },
      ]),
      lines([
        { type: 'rollback', by: 'a', generation: 3, reason: 'x', force: true },
        { type: 'forget', by: 'a', bundle: 'b', serial: 4 },
        { type: 'verify', repair: true, by: 'a' },
        { type: 'resume', by: 'a' },
      ]),
    ],
    tokens: [
      ...jsonTokens,
      ...[
        'status',
        'watch',
        'health',
        'refusals',
        'forget',
        'history',
        'pause',
        'resume',
        'reload',
        'verify',
      ],
      ...[
        '"type":"',
        '"by":"',
        '"limit":',
        '"untilMs":',
        '"serial":',
        '"__proto__":{',
        '"writ":1',
        '"version":"',
      ],
    ],
    check: (input) => {
      for (const message of readLines(input)) {
        acceptedOr(refused, () => parseHello(message));
        acceptedOr(refused, () => parseReadRequest(message));
        const request = acceptedOr(refused, () => parse(message));
        if ('value' in request) checkRequest(request.value);
      }
    },
  };
}

function checkRequest(request: object): void {
  for (const [member, value] of Object.entries(request)) {
    if (typeof value === 'number') assert.ok(Number.isSafeInteger(value) && value >= 0, `${member} ${value}`);
    else assert.ok(typeof value === 'string' || typeof value === 'boolean', `${member} is ${typeof value}`);
  }
}

/** @param parse parser under test; a test passes a broken one */
export function nativeTarget(parse: typeof parseWorkerMessage = parseWorkerMessage): Target {
  return {
    name: 'native-protocol',
    reshape: changeJson,
    seeds: [
      lines([
        { type: 'hello', name: 'access-1', pid: 4711 },
        { type: 'ack', id: 1, generation: 7 },
      ]),
      lines([
        { type: 'nack', id: 1, generation: 7, reason: 'no' },
        { type: 'generation', id: 3, generation: 7, path: '/policy/generations/7' },
      ]),
    ],
    tokens: [
      ...jsonTokens,
      'hello',
      'ack',
      'nack',
      'generation',
      '"reason":"',
      '"pid":',
      '"id":',
      '"path":"/',
      'x'.repeat(900),
    ],
    check: (input) => {
      for (const message of readLines(input)) {
        const worker = acceptedOr(refused, () => parse(message));
        if ('value' in worker) checkWorkerMessage(worker.value);
        const agent = acceptedOr(refused, () => parseAgentMessage(message));
        if ('value' in agent && agent.value !== undefined) checkCounts(countsOf(agent.value));
      }
    },
  };
}

function countsOf(message: { readonly id: number; readonly generation?: number }): readonly number[] {
  return message.generation === undefined ? [message.id] : [message.id, message.generation];
}

function checkWorkerMessage(message: ReturnType<typeof parseWorkerMessage>): void {
  if (message.type === 'hello') assert.ok(isWorkerName(message.name));
  checkCounts(message.type === 'hello' ? [message.pid] : countsOf(message));
  if (message.type === 'nack') assert.ok(Buffer.byteLength(message.reason) <= maxReasonBytes);
}

function checkCounts(counts: readonly number[]): void {
  for (const count of counts) assert.ok(Number.isSafeInteger(count) && count > 0, `${count}`);
}

type KresdReader = () => (chunk: Uint8Array) => KresdAnswer | undefined;

/** @param createReader reader under test; a test passes a broken one */
export function kresdTarget(createReader: KresdReader = createKresdReader): Target {
  const framed = (text: string): Buffer => {
    const bytes = Buffer.from(text);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  const read = (pieces: Iterable<Buffer>): KresdAnswer | undefined => {
    const push = createReader();
    for (const piece of pieces) {
      const answer = push(piece);
      if (answer !== undefined) return answer;
    }
    return undefined;
  };
  return {
    name: 'kresd',
    seeds: [
      framed('true'),
      Buffer.concat([Buffer.from('> '), framed('ok')]),
      framed(''),
      Buffer.from('> > '),
    ],
    tokens: ['> ', '>', '\0\0\0\u0001', '\0\0\0\0', '\u00ff\u00ff\u00ff\u00ff', '\0\u000f\u0042\u0040', '\n'],
    check: (input) => {
      const whole = read([input]);
      for (const one of sizes) assert.deepEqual(read(inPieces(input, one)), whole, `in pieces of ${one}`);
      if (whole?.kind === 'malformed') assert.ok(whole.length > maxKresdAnswerBytes);
    },
  };
}
