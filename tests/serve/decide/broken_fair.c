/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fair queue's walker sees each of its equations broken. For builds with assertions: the file under test is a part of this one,
 * as its structs are its own.
 */
#include "../../../runtime/serve/decide/fair.c"

#include <criterion/criterion.h>
#include <signal.h>

/* Two items of client 0 and one of client 1, the first charged with 4 of 8 samples. */
static struct sl_fair_item items[3];

static struct sl_fair *make_fair(void)
{
        struct sl_fair *fair;

        cr_assert_eq(sl_fair_new(2, &fair), 0);
        for (uint32_t i = 0; i < 3; i++) {
                items[i] = (struct sl_fair_item){.client = i / 2, .priority = 1, .samples = 8};
                sl_fair_push(fair, &items[i]);
        }
        cr_assert_eq(sl_fair_peek(fair, 4), &items[0]);
        sl_fair_charge(fair, &items[0], 4);
        sl_fair_walk(fair);
        return fair;
}

static struct flow *flow(struct sl_fair *fair, uint32_t client, uint32_t priority)
{
        return &fair->flows[client * SL_CLASSES + priority];
}

#define BREAKS(equation, statement)                                                                                                \
        Test(broken_fair, equation, .signal = SIGABRT)                                                                             \
        {                                                                                                                          \
                struct sl_fair *fair = make_fair();                                                                                \
                                                                                                                                   \
                statement;                                                                                                         \
                sl_fair_walk(fair);                                                                                                \
        }

BREAKS(f1_a_flow_in_the_ring_has_an_item, flow(fair, 1, 1)->first = flow(fair, 1, 1)->last = NULL)
BREAKS(f1_a_flow_with_an_item_is_in_the_ring, flow(fair, 0, 3)->first = &items[0])
BREAKS(f2_a_flow_has_the_samples_of_its_items, items[1].samples++)
BREAKS(f2_nothing_is_left_of_no_item, items[1].samples = 0)
BREAKS(f3_a_flow_without_items_has_no_credit, flow(fair, 0, 0)->deficit = 1)
BREAKS(f4_items_are_of_the_flow_s_client, items[1].client = 1)
BREAKS(f4_items_are_of_the_flow_s_class, items[1].priority = 2)
BREAKS(f4_items_know_the_one_before, items[1].previous = NULL)
BREAKS(f4_the_last_item_is_the_last, flow(fair, 0, 1)->last = &items[0])
BREAKS(f5_a_class_knows_how_many_flows_it_has, fair->classes[1].flows++)
BREAKS(f5_flows_know_the_one_before, flow(fair, 1, 1)->previous = flow(fair, 1, 1))
BREAKS(f5_a_class_without_flows_has_no_turn, fair->classes[2].turn = flow(fair, 0, 1))
BREAKS(f6_a_class_has_the_samples_of_its_flows, fair->classes[1].samples--)
BREAKS(f7_nobody_s_turn_is_granted, fair->classes[0].granted = true)

Test(broken_fair, a_turn_that_was_not_granted_is_not_charged, .signal = SIGABRT)
{
        sl_fair_charge(make_fair(), &items[2], 8);
}
