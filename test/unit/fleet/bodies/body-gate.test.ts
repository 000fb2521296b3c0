// How long a body uses its budget: from its headers until the answer, and until the end of its handler after a disconnect.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fastify, { type FastifyInstance } from 'fastify';
import { BodyBudget } from '../../../../src/fleet/bodies/body-budget.js';
import { BodyGate } from '../../../../src/fleet/bodies/body-gate.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { until } from '../../../kit/assert/until.js';
import { openRequest } from '../../../kit/net/open-request.js';

describe('the memory of a body', () => {
  const budget = new BodyBudget();
  const gate = new BodyGate({ budget, clock: systemClock });
  let app: FastifyInstance;
  let url = '';
  let finish: (error?: Error) => void = () => undefined;
  before(async () => {
    app = fastify();
    gate.addTo(app);
    app.post('/', (request) =>
      gate.keepDuring(
        request,
        () =>
          new Promise((resolve, reject) => {
            finish = (error) => (error === undefined ? resolve({}) : reject(error));
          }),
      ),
    );
    url = await app.listen({ host: '127.0.0.1', port: 0 });
  });
  after(() => app.close());
  const announced = { 'content-length': '10' };

  it('is reserved from the headers on, and released when the client disconnects before the end of its body', async () => {
    const request = openRequest(url, '/', announced);
    await until(() => budget.totalBytes === 10);
    await request[Symbol.asyncDispose]();
    await until(() => budget.totalBytes === 0);
  });

  for (const [name, error] of [
    ['is kept until the handler answers, also when its client has gone', undefined],
    ['is kept until the handler fails, also when its client has gone', new Error('planned')],
  ] as const)
    it(name, async () => {
      let isClosed = false;
      app.server.once('connection', (socket) => socket.once('close', () => (isClosed = true)));
      const request = openRequest(url, '/', announced);
      finish = () => undefined;
      const before = finish;
      request.send('"12345678"');
      await until(() => finish !== before);
      await request[Symbol.asyncDispose]();
      await until(() => isClosed);
      await new Promise(setImmediate);
      assert.equal(budget.totalBytes, 10);
      finish(error);
      await until(() => budget.totalBytes === 0);
    });

  it('is released after the answer', async () => {
    await using request = openRequest(url, '/', announced);
    finish = () => undefined;
    const before = finish;
    request.send('"12345678"');
    await until(() => finish !== before);
    finish();
    assert.equal((await request.answer)[0], 200);
    await until(() => budget.totalBytes === 0);
  });
});
