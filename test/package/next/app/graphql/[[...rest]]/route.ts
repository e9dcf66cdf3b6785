import { petql } from '../../../lib/gateway';

const handler = (request: Request) => petql().fetch(request);
export { handler as GET, handler as OPTIONS, handler as POST };
