// Lengths, deadlines and cuts of what comes over HTTP.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openRepositorySource } from '../../../../src/trust/sources/repository-source.js';
import type { Begun, RepositorySource, StreamOptions } from '../../../../src/trust/sources/source.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { heldTimer } from '../../../kit/clock/held-timer.js';
import { type Answer, always, bench } from '../../../kit/net/http-bench.js';

async function collect(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Ten bytes, of which the first `offset` are here. */
async function resume(source: RepositorySource, from: Pick<StreamOptions, 'offset' | 'etag'>) {
  const begun: Begun[] = [];
  const onBegin = (one: Begun): void => void begun.push(one);
  return { got: await collect(source.stream('targets/a', { length: 10, ...from, onBegin })), begun };
}

describe('http source: lengths and deadlines', () => {
  it('stops an endless body at its bound', async () => {
    let sent = 0;
    await using it = await bench((_request, response) => {
      const chunk = Buffer.alloc(10_000);
      const more = (): void => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length;
        response.once('drain', more);
      };
      more();
    });
    await rejectsCode('DOWNLOAD_TOO_LARGE', it.source.fetch('x', { maxBytes: 50_000 }));
    assert.ok(sent < 50_000_000);
  });

  it('refuses a declared length over the bound without reading', async () => {
    await using it = await bench((_request, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.flushHeaders();
    });
    const error = await rejectsCode('DOWNLOAD_TOO_LARGE', it.source.fetch('x', { maxBytes: 999 }));
    assert.equal(error.facts.actual, 1000);
  });

  it('detects a truncated body, with a declared length or in chunks', async () => {
    for (const headers of [{ 'content-length': '1000' }, {}]) {
      await using it = await bench((_request, response) => {
        response.writeHead(200, headers);
        response.write('half', () => response.destroy());
      });
      await rejectsCode('DOWNLOAD_TRUNCATED', it.source.fetch('x', { maxBytes: 5000 }));
    }
  });

  it('gives up on a server that accepts and never answers', async () => {
    await using it = await bench(() => undefined, { idleTimeoutMs: 60 });
    await rejectsCode('DOWNLOAD_TIMEOUT', it.source.fetch('x', { maxBytes: 10 }));
  });

  it('gives up on a body that stops coming', async () => {
    const answer: Answer = (_request, response) => {
      response.write('half');
    };
    await using it = await bench(answer, { idleTimeoutMs: 60 });
    await rejectsCode('DOWNLOAD_TIMEOUT', it.source.fetch('x', { maxBytes: 10 }));
  });

  it('gives up on a drip that never stops and never ends', async () => {
    const answer: Answer = (_request, response) => {
      const timer = setInterval(() => response.write('.'), 5);
      response.on('close', () => clearInterval(timer));
    };
    await using it = await bench(answer, { idleTimeoutMs: 5000, metadataTimeoutMs: 80 });
    await rejectsCode('DOWNLOAD_TIMEOUT', it.source.fetch('x', { maxBytes: 1_000_000 }));
  });

  it('waits no longer than for a piece for the rest of an answer that needs no body', async (t) => {
    const idleTimeoutMs = 61_003;
    const pieceTime = heldTimer(t, idleTimeoutMs);
    const answer: Answer = (_request, response) => {
      response.writeHead(404);
      const timer = setInterval(() => response.write('.'), 5);
      response.on('close', () => clearInterval(timer));
    };
    await using it = await bench(answer, { idleTimeoutMs, metadataTimeoutMs: 600_000 });
    const fetched = it.source.fetch('x', { maxBytes: 10 });
    await pieceTime.fire();
    assert.deepEqual(await fetched, { kind: 'absent' });
  });

  it('ends when the caller aborts it', async () => {
    await using it = await bench(() => controller.abort());
    const controller = new AbortController();
    await rejectsCode('INTERRUPTED', it.source.fetch('x', { maxBytes: 10, signal: controller.signal }));
    await rejectsCode('INTERRUPTED', it.source.fetch('x', { maxBytes: 10, signal: controller.signal }));
    assert.equal(it.server.requests.length, 1);
  });
});

describe('http source: stream', () => {
  const body = '0123456789';
  const ranged =
    (total = body): Answer =>
    (request, response) => {
      const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1]);
      response.writeHead(206, { 'content-range': `bytes ${start}-${total.length - 1}/${total.length}` });
      response.end(total.slice(start));
    };

  it('streams a whole target without a range', async () => {
    await using it = await bench(always(200, {}, body));
    assert.equal(await collect(it.source.stream('targets/a', { length: 10 })), body);
    assert.equal(it.server.requests[0]?.headers.range, undefined);
  });

  it('ends a body that drips, though it never pauses', async () => {
    await using it = await bench((_request, response) => {
      let left = 3000;
      const timer = setInterval(() => (left-- > 0 ? response.write('.') : response.end()), 1);
      response.on('close', () => clearInterval(timer));
    });
    let timeMs = 0;
    const monotonicMs = (): number => {
      timeMs += 1000;
      return timeMs;
    };
    const clock = { ...fakeClock(), monotonicMs };
    const source = openRepositorySource(it.server.url, { clock, version: '9.9.9' });
    await rejectsCode('DOWNLOAD_TIMEOUT', collect(source.stream('targets/a', { length: 1_000_000 })));
    await source.close();
  });

  it('resumes after an interruption if the server still has the version', async () => {
    await using it = await bench(ranged());
    const { got, begun } = await resume(it.source, { offset: 4, etag: '"v1"' });
    assert.deepEqual([got, begun], ['456789', [{ offset: 4, etag: undefined }]]);
    const { range, 'if-range': version } = it.server.requests[0]?.headers ?? {};
    assert.deepEqual([range, version], ['bytes=4-', '"v1"']);
  });

  it('resumes without a strong ETag, because the name of a target contains its digest', async () => {
    for (const etag of [undefined, 'W/"v1"', 'v1', '"two\r\nlines"', `"${'x'.repeat(300)}"`]) {
      await using it = await bench(ranged());
      assert.equal((await resume(it.source, { offset: 4, etag })).got, '456789');
      assert.equal(it.server.requests[0]?.headers['if-range'], undefined);
    }
  });

  it('reads the whole file from a server that ignores the range or has another version, and reports that', async () => {
    await using it = await bench(always(200, { etag: '"v2"' }, body));
    const { got, begun } = await resume(it.source, { offset: 4, etag: '"v1"' });
    assert.deepEqual([got, begun], [body, [{ offset: 0, etag: '"v2"' }]]);
  });

  it('requests the whole file if the range is refused', async () => {
    const refusals: Answer[] = [
      always(416, { 'content-range': 'bytes */3' }),
      ...['bytes 3-9/10', 'bytes 4-8/10', 'bytes 4-9/11', 'bytes 4-10/10', 'none'].map((range) =>
        always(206, { 'content-range': range, 'content-length': '6' }, '456789'),
      ),
      always(206, { 'content-type': 'multipart/byteranges; boundary=x' }, '--x'),
      always(206, { 'content-range': 'bytes 4-9/10', 'content-length': '5' }, '45678'),
      always(206, { 'content-range': 'bytes 4-9/10', etag: '"v2"' }, '456789'),
    ];
    for (const refusal of refusals) {
      const answers = [refusal, always(200, {}, body)];
      await using it = await bench((request, response) => answers.shift()?.(request, response));
      const { got, begun } = await resume(it.source, { offset: 4, etag: '"v1"' });
      assert.deepEqual([got, begun.map(({ offset }) => offset)], [body, [0]]);
      assert.deepEqual(
        it.server.requests.map(({ headers }) => [headers.range, headers['if-range']]),
        [
          ['bytes=4-', '"v1"'],
          [undefined, undefined],
        ],
      );
    }
  });

  it('sends at most two requests, whatever the responses', async () => {
    for (const [answer, code] of [
      [always(416), 'DOWNLOAD_TRUNCATED'],
      [always(206, { 'content-range': 'bytes 4-9/11' }, '456789'), 'SERVER_ERROR'],
    ] as const) {
      await using it = await bench(answer);
      await rejectsCode(code, resume(it.source, { offset: 4 }));
      assert.equal(it.server.requests.length, 2);
    }
  });

  it('accepts at most the missing bytes of a range', async () => {
    await using it = await bench((_request, response) => {
      response.writeHead(206, { 'content-range': 'bytes 4-9/10' });
      response.write('456', () => response.end('789and more'));
    });
    await rejectsCode('DOWNLOAD_TOO_LARGE', resume(it.source, { offset: 4 }));
  });

  it('sends no request when no bytes are missing', async () => {
    await using it = await bench(always(200, {}, body));
    assert.equal(await collect(it.source.stream('targets/a', { length: 10, offset: 10 })), '');
    assert.equal(it.server.requests.length, 0);
  });

  it('refuses a range that was not requested', async () => {
    await using it = await bench(always(206, { 'content-range': 'bytes 0-9/10' }, body));
    await rejectsCode('SERVER_ERROR', collect(it.source.stream('targets/a', { length: 10 })));
  });

  it('requires the signed length of the body, declared or not', async () => {
    const chunked = (text: string): Answer => {
      return (_request, response) => {
        response.write(text.slice(0, 1));
        response.end(text.slice(1));
      };
    };
    const cases = [
      [always(200, { 'content-length': '11' }, `${body}x`), 'DOWNLOAD_TOO_LARGE'],
      [always(200, { 'content-length': '9' }, body.slice(1)), 'DOWNLOAD_TRUNCATED'],
      [chunked(`${body}x`), 'DOWNLOAD_TOO_LARGE'],
      [chunked(body.slice(1)), 'DOWNLOAD_TRUNCATED'],
      [always(416), 'DOWNLOAD_TRUNCATED'],
      [always(404), 'TARGET_MISSING'],
      [always(302, { location: '/' }), 'REDIRECT_REFUSED'],
    ] as const;
    for (const [answer, code] of cases) {
      await using it = await bench(answer);
      await rejectsCode(code, collect(it.source.stream('targets/a', { length: 10 })));
    }
  });

  it('releases the connection when the reader stops early', async () => {
    await using it = await bench(always(200, {}, 'x'.repeat(1_000_000)));
    for await (const chunk of it.source.stream('targets/a', { length: 1_000_000 })) {
      assert.ok(chunk.length > 0);
      break;
    }
    assert.equal((await it.source.fetch('x', { maxBytes: 2_000_000 })).kind, 'found');
  });
});
