// Signing in and out by forms: a token goes in by the body of one request and nowhere else, a cookie comes out. Whether a token
// is good, and what a session is, the doors know; here is only where the forms lead.
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isWritError } from '../../core/errors.js';
import type { Role } from '../../core/fleet/answers.js';
import { ownPath } from './addresses.js';
import { signInPage } from './doorway.js';
import type { Frame, Visitor } from './layout.js';

/** What of a request says who asks. */
type Asking = Pick<FastifyRequest, 'headers' | 'ip'>;

export interface Doors {
  /** @returns undefined without credentials that are good now */
  visitorOf(asking: Asking): Promise<(Visitor & { readonly role: Role }) | undefined>;
  /** @returns the text of Set-Cookie. @throws FLEET_TOKEN_REFUSED, FLEET_REFUSED_OFTEN, FLEET_FORBIDDEN for a form of another site */
  signIn(token: string, asking: Asking): Promise<string>;
  /** @returns the text of Set-Cookie that takes it away. @throws FLEET_FORBIDDEN for a form of another site */
  signOut(headers: IncomingHttpHeaders): Promise<string>;
}

interface SignInParts {
  readonly doors: Doors;
  readonly frameOf: (request: FastifyRequest) => Frame;
}

export function registerSignIn(scope: FastifyInstance, { doors, frameOf }: SignInParts): void {
  scope.get('/sign-in', (request, reply) => {
    const next = new URL(request.url, 'http://own').searchParams.get('next') ?? '/';
    return reply.type('text/html; charset=utf-8').send(signInPage({ next: ownPath(next) }, frameOf(request)));
  });
  scope.post('/sign-in', { bodyLimit: 8192 }, async (request, reply) => {
    const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams();
    const next = ownPath(form.get('next') ?? '/');
    try {
      const cookie = await doors.signIn((form.get('token') ?? '').trim(), request);
      return await reply.header('set-cookie', cookie).redirect(next, 303);
    } catch (error) {
      if (!isWritError(error) || error.code !== 'FLEET_TOKEN_REFUSED') throw error;
      const refused = 'This token was not accepted. Was it copied completely?';
      const page = signInPage({ next, refused }, frameOf(request));
      return reply.code(401).type('text/html; charset=utf-8').send(page);
    }
  });
  scope.post('/sign-out', { bodyLimit: 8192 }, async (request, reply) =>
    reply.header('set-cookie', await doors.signOut(request.headers)).redirect('/sign-in', 303),
  );
}
